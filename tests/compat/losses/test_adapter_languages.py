"""--criterion sentence_prediction_adapters."""

import pytest
import torch
from fairseq.criterions.sentence_prediction_adapters import SentencePredictionCriterionAdapters


class Languages(torch.nn.Module):
    """Remembers the languages it is called with."""

    classification_heads = {"sentiment"}

    def forward(self, src_tokens, features_only, classification_head_name, lang_id):
        self.languages = lang_id
        return torch.zeros(len(src_tokens), 2), None

    def get_targets(self, sample, output):
        return sample["target"]


@pytest.mark.parametrize("languages", [["de_DE", "fr_XX"], None])
def test_adapters_are_of_the_language(languages):
    criterion = object.__new__(SentencePredictionCriterionAdapters)
    torch.nn.Module.__init__(criterion)
    criterion.classification_head_name, criterion.regression_target = "sentiment", False
    sample = {
        "net_input": {"src_tokens": torch.ones(2, 3).long()},
        **{"target": torch.tensor([0, 1]), "nsentences": 2, "ntokens": 6},
    }
    if languages:
        sample["lang_id"] = languages
    model = Languages()
    _, size, _ = criterion(model, sample)
    assert size == 2 and model.languages == (languages or ["en_XX", "en_XX"])
