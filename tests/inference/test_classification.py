"""``classify``: the labels that fairseq-interactive prints, with all probabilities."""

import numpy as np
import pytest
import torch
from options.systems import SYSTEMS

import fairseq_ext

NAMES = ["duo_classifier", "duo_classifier_mean_mlp", "dual_lstm_classifier"]
TEXTS = ["good film was it", "the plot of it and bad", "nowhere"]


@pytest.mark.parametrize("name", NAMES)
def test_labels_and_probabilities(name, data, checkpoint_of):
    model = fairseq_ext.load(checkpoint_of(name), data[SYSTEMS[name].data])
    results = model.classify([*TEXTS, ""])
    printed = model.translate(TEXTS)
    for result, other in zip(results, printed):
        assert result.label == other.text
        assert sum(result.probabilities.values()) == pytest.approx(1, abs=1e-5)
        assert result.probabilities[result.label] == max(result.probabilities.values())
        assert result.probabilities[result.label] == pytest.approx(
            2 ** other.hypotheses[0].score, rel=1e-4
        )
    assert results[-1].label == "" and "an empty text" in results[-1].error


def test_attention_over_both_embeddings(data, checkpoint_of):
    model = fairseq_ext.load(checkpoint_of("duo_classifier"), data["reviews"])
    (network,) = model.loaded.models
    sentence = network.classifier.sentence
    for result in model.classify(TEXTS):
        tokens = torch.tensor([[model.task.texts.index(word) for word in result.tokens]])
        for name, table, query in (
            ("s", network.classifier.s, sentence.w_s),
            ("p", network.classifier.p, sentence.w_p),
        ):
            with torch.no_grad():
                expected = (table(tokens)[0] @ query).softmax(dim=0).numpy()
            assert np.allclose(result.attention[name], expected, atol=1e-6)
    other = fairseq_ext.load(checkpoint_of("duo_classifier_mean_mlp"), data["reviews"])
    assert other.classify(TEXTS)[0].attention is None
