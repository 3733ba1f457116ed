"""Both sides of a direction: which sentence a row of the beam reads, and when nothing is copied."""

import pytest
import torch
from streams.support import dictionary
from torch import nn

from fairseq_ext.streams.direction import CACHE, Direction, SourceSide, TargetSide

WORDS = dictionary()
SOURCES = torch.tensor([[5, 6, 2], [7, 2, 1]])


class Module(nn.Module):
    """Encodes a token as its index; logits are the sum of a row's source, for every word."""

    def __init__(self):
        super().__init__()
        self.states = []

    def encode(self, tokens):
        return tokens.unsqueeze(2).float(), tokens.eq(WORDS.pad())

    def decode(self, prev_tokens, states, padding, cache, need_weights):
        self.states.append(states)
        if cache is not None:
            cache["seen"] = torch.arange(len(prev_tokens))  # one entry for each row
            cache["context_sums"] = states.sum(dim=1)  # one for each sentence
        # equally many neighbouring rows belong to each sentence
        sums = states.masked_fill(padding.unsqueeze(2), 0).sum(dim=1)  # (B or R, 1)
        rows = sums.repeat_interleave(len(prev_tokens) // len(sums), dim=0)
        return rows.unsqueeze(1).expand(-1, prev_tokens.size(1), 1), None

    def logits(self, hidden):
        return hidden.expand(-1, -1, len(WORDS))


@pytest.fixture
def module():
    return Module()


@pytest.fixture
def direction(module):
    return Direction(SourceSide(module, WORDS, 10), TargetSide(module, WORDS, 12))


def sums(direction, encoder_out, rows, **more):
    """What the rows have read of their sources."""
    words = torch.full((rows, 1), WORDS.eos())
    return direction.decoder(words, encoder_out, **more)[0][:, 0, 0].tolist()


def test_sources_are_kept_once_for_a_beam(direction, module):
    """Rows 0 and 1 of sentence 0, rows 2 and 3 of sentence 1: nothing is copied."""
    encoder_out = direction.encoder(SOURCES)
    beams = direction.encoder.reorder_encoder_out(encoder_out, torch.tensor([0, 0, 1, 1]))
    assert sums(direction, beams, 4) == [13, 13, 9, 9]
    assert module.states[-1] is encoder_out["encoded"][0][0]


@pytest.mark.parametrize("order", [[1, 1, 0, 0], [0, 1, 0, 1], [1, 1]])
def test_rows_in_any_order_read_their_own_sentence(direction, order):
    encoder_out = direction.encoder(SOURCES)
    rows = direction.encoder.reorder_encoder_out(encoder_out, torch.tensor(order))
    assert sums(direction, rows, len(order)) == [(13, 9)[sentence] for sentence in order]


def test_orders_follow_each_other(direction):
    rows = direction.encoder(SOURCES)
    for order in ([0, 0, 1, 1], [3, 0, 2, 1]):
        rows = direction.encoder.reorder_encoder_out(rows, torch.tensor(order))
    assert rows["rows"].tolist() == [1, 0, 1, 0]
    assert sums(direction, rows, 4) == [9, 13, 9, 13]


def test_the_cache_is_reordered_with_the_rows(direction):
    state = {}
    rows = torch.tensor([0, 0, 1, 1])
    beams = direction.encoder.reorder_encoder_out(direction.encoder(SOURCES), rows)
    sums(direction, beams, 4, incremental_state=state)
    direction.decoder.reorder_incremental_state(state, torch.tensor([1, 1, 3, 2]))
    assert state[CACHE]["seen"].tolist() == [1, 1, 3, 2]
    assert len(state[CACHE]["context_sums"]) == 2
    direction.decoder.reorder_incremental_state({}, torch.tensor([1, 1]))  # before the first step


def test_forward_reads_the_source_of_each_sentence(direction):
    lengths, previous = torch.tensor([3, 2]), torch.tensor([[2, 8, 9], [2, 8, 1]])
    logits, _ = direction(SOURCES, lengths, previous)
    assert logits.shape == (2, 3, len(WORDS)) and logits[:, 2, 4].tolist() == [13, 9]
    assert (direction.max_positions(), direction.max_decoder_positions()) == ((10, 12), 12)
