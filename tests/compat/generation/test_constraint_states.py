"""What a hypothesis has of its constraints is what its tokens contain."""

import random

import pytest
import torch
from common.words import numbered_words
from fairseq import search
from fairseq.sequence_generator import SequenceGenerator
from fairseq.token_generation_constraints import (
    OrderedConstraintState,
    UnorderedConstraintState,
    pack_constraints,
)

WORDS = numbered_words(12)


class Words(torch.nn.Module):
    """log P of the next word depends on the word before."""

    def __init__(self, seed):
        super().__init__()
        torch.manual_seed(seed)
        self.table = 2 * torch.randn(len(WORDS), len(WORDS))
        self.table[:, WORDS.eos()] += 2

    def forward(self, tokens):
        return self.table[tokens], None

    def get_normalized_probs(self, output, log_probs, sample=None):
        return output[0].log_softmax(2)


def packed(constraints):
    return pack_constraints([[torch.tensor(words) for words in constraints]])


def counted(constraints, tokens):
    """(constraints, tokens of constraints) that the tokens contain in this order."""
    sizes = [len(words) for words in constraints]
    for number, words in enumerate(constraints):
        ends = [end for end in range(len(tokens) + 1) if tokens[:end][-len(words) :] == words]
        if not ends:
            begun = [n for n in range(len(words)) if tokens[max(0, len(tokens) - n) :] == words[:n]]
            return number, sum(sizes[:number]) + max(begun)
        tokens = tokens[ends[0] :]
    return len(constraints), sum(sizes)


@pytest.mark.parametrize(
    "constraints",
    [[[5, 6], [7, 8]], [[5], [5, 6], [6]], [[5, 5, 6], [5]], [[5, 6, 5, 7], [6]]],
    ids=str,
)
def test_states_are_of_the_tokens(constraints):
    draw = random.Random(1)
    for _ in range(60):
        tokens = draw.choices([5, 6, 7, 8], k=10)
        state = OrderedConstraintState.create(packed(constraints)[0])
        for number, token in enumerate(tokens, start=1):
            state = state.advance(torch.tensor(token))
            assert (state.num_completed, state.bank) == counted(constraints, tokens[:number])
        assert state.finished == (state.num_completed == len(constraints))


@pytest.mark.parametrize(
    "tokens, expected", [([], {5}), ([5], {5, 6}), ([5, 6], {7}), ([5, 6, 7, 8], set())]
)
def test_next_tokens_go_on_or_begin_again(tokens, expected):
    state = OrderedConstraintState.create(packed([[5, 6], [7, 8]])[0])
    for token in tokens:
        state = state.advance(token)
    assert state.next_tokens() == expected


def test_unordered_constraints_begin_again():
    state = UnorderedConstraintState.create(packed([[5, 6], [7, 8]])[0])
    banks = []
    for token in (7, 7, 9, 7, 8, 5, 5, 6):
        state = state.advance(token)
        banks.append(state.bank)
    assert banks == [1, 1, 0, 1, 2, 3, 3, 4] and state.finished


def most(constraints, tokens):
    """The most constraints that stand in the tokens, no two of them at the same place."""
    if not tokens or not constraints:
        return 0
    counts = [most(constraints, tokens[1:])]
    for number, words in enumerate(constraints):
        if tokens[: len(words)] == words:
            others = constraints[:number] + constraints[number + 1 :]
            counts.append(1 + most(others, tokens[len(words) :]))
    return max(counts)


def unordered(constraints, tokens):
    state = UnorderedConstraintState.create(packed(constraints)[0])
    for token in tokens:
        state = state.advance(torch.tensor(token))
    return state


@pytest.mark.parametrize(
    "constraints",
    [[[5, 5, 6]], [[5, 6, 5, 7]], [[5, 5, 6], [5, 5, 6]], [[5, 5, 6], [7]], [[5, 6, 7], [6, 8]]],
    ids=str,
)
def test_unordered_constraints_are_those_of_the_tokens(constraints):
    draw = random.Random(2)
    for _ in range(300):
        tokens = draw.choices([5, 6, 7, 8], k=10)
        state = unordered(constraints, tokens)
        assert state.num_completed == most(constraints, tokens)
        assert state.finished == (state.num_completed == len(constraints))


def test_what_stands_there_once_counts_once():
    """Of constraints that begin alike, the longest counts, which may not be the best choice."""
    draw, fewer = random.Random(3), 0
    for _ in range(300):
        constraints = [draw.choices([5, 6, 7], k=draw.randint(1, 3)) for _ in range(3)]
        tokens = draw.choices([5, 6, 7], k=9)
        best, completed = most(constraints, tokens), unordered(constraints, tokens).num_completed
        assert completed <= best
        fewer += completed < best
    assert fewer < 30


def test_translations_have_their_constraints():
    """In stock, those of four of these models begin anew with 6 7 until there is no room left."""
    source = torch.tensor([[4, 4, 4, WORDS.eos()]])
    sample = {"net_input": {"src_tokens": source, "src_lengths": torch.tensor([4])}}
    for seed in range(12):
        strategy = search.LexicallyConstrainedBeamSearch(WORDS, "ordered")
        generator = SequenceGenerator(
            [Words(seed)], WORDS, beam_size=4, max_len_b=10, search_strategy=strategy
        )
        constraints = [[6, 7], [8, 9, 10]]
        (nbest,) = generator.generate(None, sample, constraints=packed(constraints))
        assert all(counted(constraints, entry["tokens"].tolist())[0] == 2 for entry in nbest)
