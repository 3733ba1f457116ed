"""Noise on sources: what it does to words, and how often."""

import pytest
import torch

from fairseq_ext.streams.synthetic_noise import noised

PAD, FILLER, ROWS, WORDS = 1, 3, 4000, 12


@pytest.fixture(scope="module")
def result():
    """Sentences whose words are their positions + 10, and the same with noise."""
    words = (torch.arange(WORDS) + 10).repeat(ROWS, 1)
    lengths = torch.arange(ROWS) % WORDS + 1
    words = words.masked_fill(torch.arange(WORDS) >= lengths.unsqueeze(1), PAD)
    return words, lengths, *noised(words, lengths, torch.arange(ROWS), 5, PAD, FILLER)


def sentences(words, lengths):
    return [row[:length].tolist() for row, length in zip(words, lengths)]


def test_words_stay_within_three_positions_and_nothing_is_added(result):
    words, lengths, noisy, left = result
    assert noisy[torch.arange(WORDS) >= left.unsqueeze(1)].eq(PAD).all()
    for before, after in zip(sentences(words, lengths), sentences(noisy, left)):
        real = [word for word in after if word != FILLER]
        assert 1 <= len(after) <= len(before) and len(set(real)) == len(real)
        assert set(real) <= set(before)
        # those in front of which a word was put were at most 3 positions before it
        for place, word in enumerate(real):
            assert all(other - word <= 3 for other in real[:place])


def test_shares_are_those_of_the_paper(result):
    _, lengths, noisy, left = result
    long = lengths > 6
    deleted = 1 - left[long].sum() / lengths[long].sum()
    replaced = noisy[long].eq(FILLER).sum() / left[long].sum()
    assert deleted == pytest.approx(0.1, abs=0.01) and replaced == pytest.approx(0.1, abs=0.01)


def test_a_sentence_never_loses_all_of_its_words(result):
    _, lengths, _, left = result
    assert left.min() == 1 and (left[lengths == 1] == 1).all()


def test_noise_is_a_function_of_sentence_and_key(result):
    words, lengths, noisy, left = result
    part = slice(100, 140)
    ids = torch.arange(ROWS)[part]
    again, length = noised(words[part], lengths[part], ids, 5, PAD, FILLER)
    assert torch.equal(again, noisy[part]) and torch.equal(length, left[part])
    other, _ = noised(words[part], lengths[part], ids, 6, PAD, FILLER)
    assert not torch.equal(other, again)
