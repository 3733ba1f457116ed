"""Tokens in front of sources."""

import torch
from streams.support import pair_dataset

from fairseq_ext.streams.marked_sources import MarkedSources, marked, with_sources


def test_marks_stand_in_front_of_a_place():
    plain = pair_dataset(5).src
    for place in (0, 1):
        dataset = MarkedSources(plain, [7, 8], place)
        for index in range(5):
            expected = plain[index].tolist()
            expected[place:place] = [7, 8]
            assert dataset[index].tolist() == expected
            assert dataset.size(index) == dataset.num_tokens(index) == len(expected)
            assert dataset.sizes[index] == len(expected)
    assert marked(plain, []) is plain


def test_other_sources_leave_targets_as_they_are():
    plain = pair_dataset(5)
    dataset = with_sources(plain, marked(plain.src, [9]))
    batch, before = (
        pairs.collater([pairs[index] for index in range(5)]) for pairs in (dataset, plain)
    )
    order = torch.argsort(before["id"])
    assert torch.equal(batch["target"][torch.argsort(batch["id"])], before["target"][order])
    lengths = batch["net_input"]["src_lengths"] - 1
    assert lengths.tolist() == before["net_input"]["src_lengths"].tolist()
    assert batch["net_input"]["src_tokens"].eq(9).sum(dim=1).ge(1).all()


def test_alignments_count_the_marks():
    plain = pair_dataset(5)
    plain.align_dataset = [torch.tensor([0, 1, 2, 0])] * 5
    unmarked = with_sources(plain, marked(plain.src, []))
    assert unmarked[3]["alignment"].tolist() == [0, 1, 2, 0]
    once = with_sources(plain, marked(plain.src, [9]))
    assert once[3]["alignment"].tolist() == [1, 1, 3, 0]
    # a second mark behind the first one, as of --synthetic-tag
    twice = with_sources(once, MarkedSources(once.src, [8], 1))
    assert twice[3]["alignment"].tolist() == [2, 1, 4, 0]
