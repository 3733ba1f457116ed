"""What becomes of the answers of a search: sources and attention without padding."""

from types import SimpleNamespace

import pytest
import torch
from common.words import numbered_words

from fairseq_ext.inference.translations import source_tokens, unpadded_attention

WORDS = numbered_words(12)
PAD, END = WORDS.pad(), WORDS.eos()
# (S', T): three positions, of which padding stands on either side, and two words
WEIGHTS = torch.tensor([[0.0, 0.0], [0.25, 0.5], [0.75, 0.5], [0.0, 0.0]], dtype=torch.float16)


@pytest.mark.parametrize("tokens", [[PAD, 5, END, PAD], [PAD, PAD, 6, 7]])
def test_attention_leaves_out_the_positions_of_padding(tokens):
    tokens = torch.tensor(tokens)
    attention = unpadded_attention(WEIGHTS, tokens, PAD)
    assert attention.dtype == "float32"
    assert attention.tolist() == WEIGHTS[tokens.ne(PAD)].t().tolist()


def test_attention_of_positions_that_are_no_tokens_is_whole():
    attention = unpadded_attention(WEIGHTS[:3], torch.tensor([5, END, PAD, PAD]), PAD)
    assert attention.tolist() == WEIGHTS[:3].t().tolist()


def test_attention_of_recordings_ends_with_the_last_position_that_is_read():
    """The first position has no weight either, and is real."""
    features = torch.zeros(9, 3)
    assert unpadded_attention(WEIGHTS, features, PAD).tolist() == WEIGHTS[:3].t().tolist()
    nothing = torch.zeros(4, 2)
    assert unpadded_attention(nothing, features, PAD).tolist() == nothing.t().tolist()


@pytest.mark.parametrize("weights", [None, torch.empty(0)])
def test_models_without_attention_have_none(weights):
    assert unpadded_attention(weights, torch.tensor([5, END]), PAD) is None


def test_each_source_has_words_of_its_dictionary():
    other = numbered_words(6)
    other.symbols = [symbol.upper() for symbol in other.symbols]
    several = SimpleNamespace(dictionaries=[WORDS, other], pad=WORDS.pad, eos=WORDS.eos)
    tokens = torch.tensor([PAD, 5, END, 4, 5, END, 4])
    words = source_tokens(SimpleNamespace(source_dictionary=several), tokens)
    # a source too many is of the last dictionary
    assert words == [WORDS[5], WORDS[END], *(other[index] for index in (4, 5, END, 4))]
    (single,) = source_tokens(SimpleNamespace(source_dictionary=WORDS), torch.tensor([PAD, 5]))
    assert single == WORDS[5] != other[5]


def test_recordings_have_no_words():
    assert source_tokens(SimpleNamespace(source_dictionary=None), torch.zeros(3, 2)) == []
