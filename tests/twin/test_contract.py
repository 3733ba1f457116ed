"""The states that are compared predict the same token, in batches of any lengths.

A state is stood for by the list of tokens that its network has read: what it should be is written
down in reference/twin.py, sentence by sentence, without padding and without any reversal.
"""

import pytest
import torch
from twin.toy import END, PAD, batch, sentences

from fairseq_ext.twin import contract
from properties import collate
from reference.twin import predictions

LENGTHS = [(4, 2, 6, 1), (3,), (1,), (5, 0, 2), (0,)]


class Reads:
    """(B, T, 1) numbers that stand for "the tokens read so far"."""

    def __init__(self, tokens):
        self.lists = [row[: t + 1].tolist() for row in tokens for t in range(tokens.size(1))]
        self.states = torch.arange(float(len(self.lists))).view(*tokens.shape, 1)

    def __getitem__(self, state):
        return self.lists[int(state)]


def check_alignment(functions, lengths, extra):
    """AssertionError unless ``functions`` (of contract.py, or like them) match states rightly."""
    targets = sentences(lengths)
    data = batch(targets, extra=extra)
    prev, target = data["net_input"]["src_tokens"], data["target"]
    padding = target.eq(PAD)
    tokens, predicted = functions.backward_tokens(prev, target, padding)
    forward, backward = Reads(prev), Reads(tokens)
    aligned, matched = functions.align(backward.states, padding), functions.matched(padding)
    for row, sentence in enumerate(targets):
        read = [
            {number: so_far for so_far, number in predictions(sentence, END, side)}
            for side in (False, True)
        ]
        for t in range(target.size(1)):
            assert bool(matched[row, t]) == (t < len(sentence)), f"token {t} of {row}"
            if t < len(sentence):
                assert forward[forward.states[row, t]] == read[0][t], f"forward {t} of {row}"
                assert backward[aligned[row, t]] == read[1][t], f"backward {t} of {row}"
        numbers = [number for _, number in predictions(sentence, END, True)]
        tokens_wanted = [END if number is None else sentence[number] for number in numbers]
        padded = tokens_wanted + [PAD] * (target.size(1) - len(tokens_wanted))
        assert predicted[row].tolist() == padded, f"what the backward network predicts in {row}"


@pytest.mark.parametrize("extra", [0, 3])
@pytest.mark.parametrize("lengths", LENGTHS)
def test_states_that_predict_the_same_token_are_matched(lengths, extra):
    check_alignment(contract, lengths, extra)


class PaddedFlip:
    """The padded rows are flipped, so that the backward network begins with padding."""

    matched = staticmethod(contract.matched)

    def backward_tokens(self, prev_tokens, target, padding):
        return target.flip(1), prev_tokens.flip(1)

    def align(self, states, padding):
        return torch.cat([states[:, :-1].flip(1), states[:, -1:]], dim=1)


class OffByOne:
    """Forward position t beside the backward position that predicts the next token."""

    matched = staticmethod(contract.matched)
    backward_tokens = staticmethod(contract.backward_tokens)

    def align(self, states, padding):
        return contract.reorder(states, contract.reversal(padding))


class EndMatched:
    """The end symbol, which only the forward network predicts from the whole sentence, counts."""

    align = staticmethod(contract.align)
    backward_tokens = staticmethod(contract.backward_tokens)

    def matched(self, padding):
        return ~padding


class Unmasked(EndMatched):
    """Padding counts."""

    def matched(self, padding):
        return torch.ones_like(padding)


class PaddingMatched(EndMatched):
    """Padding counts, and the end symbol does not."""

    def matched(self, padding):
        return contract.matched(padding) | padding


@pytest.mark.parametrize("twin", [PaddedFlip, OffByOne, EndMatched, Unmasked, PaddingMatched])
def test_a_wrong_matching_is_found(twin):
    with pytest.raises(AssertionError, match="token|forward|backward"):
        check_alignment(twin(), LENGTHS[0], 0)


def test_flipping_rows_of_one_length_is_right():
    """The broken flip is found because of the padding, and for no other reason."""
    check_alignment(PaddedFlip(), (4, 4), 0)


def test_block_of_a_text_without_end_symbols():
    """Inputs w_0 .. w_3, targets w_1 .. w_4: the last target, whose future is unknown, is free."""
    prev, target = torch.tensor([[5, 6, 7, 8]]), torch.tensor([[6, 7, 8, 9]])
    padding = torch.zeros(1, 4, dtype=torch.bool)
    tokens, predicted = contract.backward_tokens(prev, target, padding)
    assert tokens.tolist() == [[9, 8, 7, 6]]
    assert predicted.tolist() == [[8, 7, 6, 5]]
    aligned = contract.align(predicted.double().unsqueeze(2), padding).squeeze(2)
    assert contract.matched(padding).tolist() == [[True, True, True, False]]
    assert aligned[0, :3].tolist() == target[0, :3].tolist()


def test_reversal_keeps_padding_at_the_end():
    target = collate([torch.tensor([4, 5, 6, END]), torch.tensor([7, END])], PAD)
    tokens, _ = contract.backward_tokens(target, target, target.eq(PAD))
    assert tokens.tolist() == [[END, 6, 5, 4], [END, 7, PAD, PAD]]
