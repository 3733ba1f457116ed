"""Blocks of text of language models (fairseq_ext/compat/data/text_blocks.py)."""

import numpy as np
import pytest
import torch
from fairseq.data import Dictionary, MonolingualDataset, TokenBlockDataset, TruncatedDictionary

LENGTHS = [70_000, 5, 65_536]


@pytest.mark.parametrize("mode, size", [("eos", None), ("complete", 10)])
def test_long_lines_have_their_size(mode, size):
    lines = [torch.full((length,), 4) for length in LENGTHS]
    blocks = TokenBlockDataset(lines, LENGTHS, size, pad=1, eos=2, break_mode=mode)
    assert blocks.sizes.tolist() == LENGTHS == [len(block) for block in blocks]


def test_short_blocks_are_stored_in_16_bits():
    lines = [torch.full((length,), 4) for length in (3, 5)]
    blocks = TokenBlockDataset(lines, [3, 5], None, pad=1, eos=2, break_mode="eos")
    assert (blocks.sizes.dtype, blocks.sizes.tolist()) == ("uint16", [3, 5])


@pytest.mark.parametrize("targets", [["future"], ["self"], ["past"], ["self", "future", "past"]])
def test_every_word_is_read(targets):
    words = Dictionary()
    for word in "abcdefgh":
        words.add_symbol(word)
    predicted = TruncatedDictionary(words, 8)
    line = torch.tensor([4, 10, 5, 11, 6, 9, 2])
    blocks = TokenBlockDataset(
        [line], np.array([7]), 3, words.pad(), words.eos(), "none", include_targets=True
    )
    dataset = MonolingualDataset(blocks, blocks.sizes, words, predicted, targets=targets)
    sources = [dataset[block]["source"].tolist() for block in range(3)]
    assert sources == [[2, 4, 10], [5, 11, 6], [9]]
    if targets == ["future"]:
        written = [dataset[block]["target"].tolist() for block in range(3)]
        assert written == [[4, 3, 5], [3, 6, 3], [2]]


@pytest.mark.filterwarnings("error")  # of an overflow, with numpy 2
@pytest.mark.parametrize("mode, size", [("none", 1), ("none", 2), ("complete", 2), ("eos", None)])
def test_past_targets_are_two_tokens_before(mode, size):
    """Within the line, or behind padding and </s>; the second line is empty."""
    lines = [torch.tensor(tokens) for tokens in ([4, 5, 6, 2], [2], [7, 8, 2])]
    blocks = TokenBlockDataset(
        lines, [4, 1, 3], size, pad=1, eos=2, break_mode=mode, include_targets=True
    )
    for length, parts in zip(blocks.sizes.tolist(), blocks):
        assert [len(part) for part in parts] == [length] * 3  # source, target and past
    if mode == "eos":
        assert [past.tolist() for _, _, past in blocks] == [[1, 2, 4, 5], [1], [1, 2, 7]]


@pytest.mark.parametrize("document_sep_len, lengths", [(1, [1, 1, 1]), (0, [1])])
def test_text_without_words_is_named(document_sep_len, lengths):
    """Empty lines separate documents; a set that has no others is left without a block."""
    lines = [torch.full((length,), 2) for length in lengths]
    cut = {"pad": 1, "eos": 2, "document_sep_len": document_sep_len}
    with pytest.raises(ValueError, match="--sample-break-mode complete_doc .* empty lines"):
        TokenBlockDataset(lines, lengths, 6, break_mode="complete_doc", **cut)
    blocks = TokenBlockDataset(lines, lengths, 6, break_mode="complete", **cut)
    assert [block.tolist() for block in blocks] == [[2] * len(lengths)]
