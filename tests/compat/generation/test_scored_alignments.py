"""The scorer of references: alignments as asked for, and targets that are padded on the left."""

import pytest
import torch
from common.words import dictionary_with
from fairseq.models.lightconv import LightConvModel
from fairseq.sequence_scorer import SequenceScorer

from fairseq_ext.compat.user_errors import OptionError

SOURCE = torch.tensor([[5, 6, 2], [1, 7, 2]])
TARGET = torch.tensor([[8, 9, 2], [6, 2, 1]])


class Model(torch.nn.Module):
    """Its log-probabilities and weights say at which position they were computed."""

    def forward(self, src_tokens, prev_output_tokens):
        rows, steps = prev_output_tokens.shape
        columns = src_tokens.size(1)
        weights = torch.arange(rows * steps * columns).float().view(rows, steps, columns) / 100
        return torch.zeros(rows, steps, 12), {"attn": [weights]}

    def get_normalized_probs(self, output, log_probs, sample):
        steps = output[0].size(1)
        return -torch.arange(1.0, steps + 1).view(1, -1, 1).expand(*output[0].shape)


def scored(target, kind):
    words = dictionary_with(*(f"word{number}" for number in range(8)))
    sample = {"net_input": {"src_tokens": SOURCE, "prev_output_tokens": target}, "target": target}
    scorer = SequenceScorer(words, compute_alignment=kind)
    return [row[0] for row in scorer.generate([Model()], sample)]


def test_soft_alignments_are_weights():
    first, second = scored(TARGET, "soft")
    assert first["alignment"][1] == ["0.030000", "0.040000", "0.050000"]
    assert second["alignment"] == [["0.100000", "0.110000"], ["0.130000", "0.140000"]]


def test_hard_alignments_stay():
    first, second = scored(TARGET, "hard")
    assert first["alignment"] == [(1, 0), (1, 1)] and second["alignment"] == [(0, 0)]
    assert scored(TARGET, False)[0]["alignment"] is None


def test_scores_begin_where_the_target_begins():
    left = TARGET.clone()
    left[1] = torch.tensor([1, 6, 2])
    first, second = scored(left, False)
    assert first["positional_scores"].tolist() == [-1, -2, -3]
    assert second["positional_scores"].tolist() == [-2, -3] and second["score"] == -2.5
    assert second["tokens"].tolist() == [6, 2]
    assert scored(left, "soft")[1]["alignment"][0] == ["0.130000", "0.140000"]


class Mixed(Model):
    """Mixes two distributions, as models of plugins that copy words, and has no attention."""

    def forward(self, src_tokens, prev_output_tokens):
        return torch.zeros(*prev_output_tokens.shape, 12), {"copied": 1}, torch.tensor(-2.0)

    def get_normalized_probs(self, output, log_probs, sample):
        assert output[1]["copied"]
        return output[0] + output[2]


def test_probabilities_may_be_of_more_outputs():
    sample = {"net_input": {"src_tokens": SOURCE, "prev_output_tokens": TARGET}, "target": TARGET}
    (first, *_) = SequenceScorer(dictionary_with("a")).generate([Mixed()], sample)
    assert first[0]["positional_scores"].tolist() == [-2, -2, -2]


class NoAttention(Model):
    """As decoders are that were not asked for it."""

    def forward(self, src_tokens, prev_output_tokens):
        scores, _ = super().forward(src_tokens, prev_output_tokens)
        return scores, {"attn": [None]}


@pytest.mark.parametrize("types", [(Model, NoAttention), (NoAttention, Model, NoAttention)])
def test_models_without_attention_join_an_ensemble(types):
    words = dictionary_with(*(f"word{number}" for number in range(8)))
    inputs = {"src_tokens": SOURCE, "prev_output_tokens": TARGET}
    scorer = SequenceScorer(words, compute_alignment="soft")
    lists = scorer.generate([kind() for kind in types], {"net_input": inputs, "target": TARGET})
    assert lists[0][0]["alignment"][1] == ["0.030000", "0.040000", "0.050000"]


def test_decoders_without_a_mask_are_refused():
    model = LightConvModel.__new__(LightConvModel)
    words = dictionary_with("word")
    left = {"target": torch.tensor([[1, 4, 2]]), "net_input": {}}
    with pytest.raises(OptionError, match="--left-pad-target with --score-reference: LightConv"):
        SequenceScorer(words).generate([model], left)
