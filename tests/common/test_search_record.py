"""The candidates of a step, and the record by which hypotheses are traced back."""

import math

import pytest
import torch

from fairseq_ext.common import search_record
from fairseq_ext.common.search_record import SearchRecord, topk_candidates

PAD, EOS = 1, 2


@pytest.mark.parametrize("words", [3, 16, 31, 64, 1000, 1003])
@pytest.mark.parametrize("beam", [1, 5])
@pytest.mark.parametrize("count", [1, 2, 10])
@pytest.mark.parametrize("short", [0, 1 << 13])
def test_candidates_are_those_of_a_sorted_vocabulary(words, beam, count, short, monkeypatch):
    monkeypatch.setattr(search_record, "SORTED_WHOLE", short)
    torch.manual_seed(words)
    log_p = torch.randn(6, beam, words).round(decimals=4)
    log_p[0] = -math.inf
    log_p[1, :, 1:] = -math.inf
    log_p[2, 0] = math.nan
    sums = torch.randn(6, beam)
    scores, words_chosen, parents = topk_candidates(log_p, sums, count)
    total = (log_p + sums.unsqueeze(2)).nan_to_num(nan=-math.inf, neginf=-math.inf).flatten(1)
    torch.testing.assert_close(scores, total.topk(min(count, beam * words - 1))[0])
    torch.testing.assert_close(total.gather(1, parents * words + words_chosen), scores)
    for row in (parents * words + words_chosen).tolist():
        assert len(set(row)) == len(row)


@pytest.fixture
def record():
    """Two sentences, beam 2: words 10 .. 13, then rows change their order, then some end."""
    record = SearchRecord(2, 2, 4, torch.zeros(1))
    both = torch.arange(2)
    record.attend(both, torch.tensor([[1.0, 0.0]] * 4))
    record.go_on(
        0, both, torch.tensor([[10, 11], [12, 13]]), torch.zeros(2, 2).long(), -torch.ones(2, 2)
    )
    record.attend(both, torch.tensor([[0.0, 1.0]] * 4))
    # the second row of the first sentence ends; both rows of the other come from its second
    ends = torch.tensor([[False, True], [False, False]])
    parents = torch.tensor([[0, 1], [1, 1]])
    record.end(1, both, ends, parents, torch.full((2, 2), -2.0))
    record.go_on(1, both, torch.tensor([[14, 15], [16, 17]]), parents, torch.full((2, 2), -3.0))
    record.attend(both, torch.tensor([[0.5, 0.5]] * 4))
    record.end(2, both, torch.ones(2, 2).bool(), parents, torch.full((2, 2), -4.0))
    return record


def test_hypotheses_are_traced_from_parent_to_parent(record):
    words, sums, attention = record.trace(PAD, EOS)
    assert words[0].tolist() == [[11, EOS, PAD], [10, 14, EOS]]
    assert words[1].tolist() == [[13, 17, EOS], [13, 17, EOS]]
    assert sums[0].tolist() == [[-1, -2, 0], [-1, -3, -4]]
    assert attention[0, 1].tolist() == [[1, 0], [0, 1], [0.5, 0.5]]


def test_hypotheses_beyond_the_beam_are_not_stored(record):
    assert record.count.tolist() == [2, 2]
    assert record.last_step[:, :-1].tolist() == [[1, 2], [2, 2]]


def test_without_attention():
    record = SearchRecord(1, 1, 1, torch.zeros(1))
    single = torch.zeros(1, 1).long()
    record.end(0, torch.arange(1), single.eq(0), single, single - 5.0)
    words, sums, attention = record.trace(PAD, EOS)
    assert (words.tolist(), sums.tolist(), attention) == ([[[EOS]]], [[[-5]]], None)
