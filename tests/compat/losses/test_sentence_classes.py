"""Classes of sentences by BART, and the logged error of a regression."""

from types import SimpleNamespace
from unittest.mock import Mock

import pytest
import torch
from common.words import dictionary_with, numbered_words
from fairseq import metrics
from fairseq.criterions.sentence_prediction import SentencePredictionCriterion
from fairseq.criterions.sentence_prediction_adapters import SentencePredictionCriterionAdapters
from fairseq.models.bart import BARTHubInterface, BARTModel
from fairseq.models.bart.model import bart_base_architecture

from fairseq_ext.compat.user_errors import OptionError

HEAD = "sentence_classification_head"
# lines with three, one and no </s>, and one without <s> that begins with its only </s>
TOKENS = torch.tensor(
    [[0, 5, 2, 2, 6, 2], [0, 8, 9, 2, 1, 1], [0, 7, 6, 4, 5, 1], [2, 7, 5, 1, 1, 1]]
)
ENDS = [5, 3, 4, 0]


@pytest.fixture
def model():
    args = SimpleNamespace(task="sentence_prediction", max_positions=16)
    for side in ("encoder", "decoder"):
        for name, size in (("layers", 1), ("embed_dim", 8), ("ffn_embed_dim", 8)):
            setattr(args, f"{side}_{name}", size)
        setattr(args, f"{side}_attention_heads", 2)
    args.max_source_positions = args.max_target_positions = 16
    bart_base_architecture(args)
    words = numbered_words(12)
    torch.manual_seed(3)
    built = BARTModel.build_model(
        args, SimpleNamespace(source_dictionary=words, target_dictionary=words)
    )
    built.register_classification_head(HEAD, num_classes=3)
    for part in built.parameters():
        torch.nn.init.normal_(part)
    return built.eval()


def alone(model, row):
    """The logits of one line without its padding."""
    tokens = TOKENS[row : row + 1, : int(TOKENS[row].ne(1).sum())]
    features = model(tokens, None, tokens.roll(1, 1), features_only=True)[0]
    return model.classification_heads[HEAD](features[:, ENDS[row]])


@pytest.mark.parametrize("rows", [[0, 1], [1, 2], [0, 1, 2, 3], [0], [2]])
def test_each_line_is_classified_by_its_own_end(rows, model):
    tokens = TOKENS[rows]
    before = torch.ones_like(tokens)
    for row, line in enumerate(tokens):
        length = int(line.ne(1).sum())
        before[row, :length] = line[:length].roll(1)
    logits = model(tokens, None, before, classification_head_name=HEAD)[0]
    torch.testing.assert_close(logits, torch.cat([alone(model, row) for row in rows]))


def test_predict_reads_the_same(model):
    words = model.encoder.dictionary
    hub = SimpleNamespace(model=model, device="cpu", task=SimpleNamespace(source_dictionary=words))
    hub.extract_features = BARTHubInterface.extract_features.__get__(hub)
    logits = BARTHubInterface.predict(hub, HEAD, TOKENS[:2], return_logits=True)
    torch.testing.assert_close(logits, torch.cat([alone(model, row) for row in (0, 1)]))
    scores = BARTHubInterface.predict(hub, HEAD, TOKENS[0])
    torch.testing.assert_close(scores, logits[:1].log_softmax(dim=1))


@pytest.mark.parametrize("correct, logged", [({}, 2.0), ({"ncorrect": 1}, 2.885)])
def test_squared_errors_are_logged_as_they_are(correct, logged):
    log = {"loss": torch.tensor(8.0), "ntokens": 9, "nsentences": 4, "sample_size": 4, **correct}
    with metrics.aggregate(new_root=True) as meters:
        SentencePredictionCriterion.reduce_metrics([log])
    assert meters.get_smoothed_value("loss") == pytest.approx(logged, abs=1e-3)


@pytest.mark.parametrize(
    "label, message",
    [
        (2, r"^--num-classes 2: the label 'mixed' is number 3 of label/dict.txt; .* at least 3$"),
        (-1, "^the label <unk> is not in the dictionary label/dict.txt"),
    ],
)
@pytest.mark.parametrize("kind", [SentencePredictionCriterion, SentencePredictionCriterionAdapters])
def test_a_label_that_is_no_class_is_named(kind, label, message):
    words = dictionary_with("good", "bad", "mixed")
    task = SimpleNamespace(label_dictionary=words, cfg=SimpleNamespace(num_classes=2))
    task.target_dictionary = words
    cfg = SimpleNamespace(classification_head_name=HEAD, regression_target=False)
    model = Mock(return_value=(torch.zeros(3, 2), None), classification_heads={HEAD: None})
    model.get_targets = lambda sample, output: sample["target"]
    model.args = SimpleNamespace()
    sample = {"net_input": {}, "target": torch.tensor([[0], [label], [1]])}
    sample.update(ntokens=14, nsentences=3)
    criterion = kind(cfg, task)
    with pytest.raises(OptionError, match=message):
        criterion(model, sample)
    sample["target"][1] = 1
    assert criterion(model, sample)[1] == 3
