"""Hypotheses that end: in searches with constraints and groups, and with another end symbol."""

import logging

import pytest
import torch
from common.words import numbered_words
from fairseq import search
from fairseq.sequence_generator import SequenceGenerator
from fairseq.token_generation_constraints import pack_constraints

PAD, END = 1, 2
WORDS = numbered_words(12)
CONSTRAINED = search.LexicallyConstrainedBeamSearch


class Words(torch.nn.Module):
    """log P of the next word depends on the word before."""

    def __init__(self, seed, end=0.0):
        super().__init__()
        torch.manual_seed(seed)
        self.table = 2 * torch.randn(len(WORDS), len(WORDS))
        self.table[:, END] += end

    def forward(self, tokens):
        return self.table[tokens], None

    def get_normalized_probs(self, output, log_probs, sample=None):
        return output[0].log_softmax(2)


def translations(model, strategy=None, sizes=(3,), constraints=None, prefix=None, **options):
    """The n-best lists of sources of these numbers of words, as lists of tokens."""
    generator = SequenceGenerator([model], WORDS, search_strategy=strategy, **options)
    rows = [[4] * size + [generator.eos] + [PAD] * (max(sizes) - size) for size in sizes]
    tokens = torch.tensor(rows)
    sample = {"net_input": {"src_tokens": tokens, "src_lengths": tokens.ne(PAD).sum(1)}}
    nbest = generator.generate(None, sample, constraints=constraints, prefix_tokens=prefix)
    return [[entry["tokens"].tolist() for entry in entries] for entries in nbest]


@pytest.mark.parametrize("seed", range(4))
def test_nothing_goes_on_behind_the_end(seed):
    """Every word is allowed: no translation comes twice, and none has an end in its middle."""
    strategy = search.PrefixConstrainedBeamSearch(WORDS, lambda sentence, tokens: range(12))
    (nbest,) = translations(Words(seed, end=2), strategy, beam_size=4, max_len_b=8)
    assert all(END not in tokens[:-1] for tokens in nbest)
    assert len({tuple(tokens) for tokens in nbest}) == len(nbest) > 1


def rows_of_groups(model, groups, beam):
    """(rows before a step, (scores, words, rows) of its candidates) of every step."""
    strategy = search.DiverseBeamSearch(WORDS, groups, 0.5)
    steps, stock = [], strategy.step

    def step(number, lprobs, scores, tokens, *more):
        candidates = stock(number, lprobs, scores, tokens, *more)
        steps.append((tokens.clone(), candidates))
        return candidates

    strategy.step = step
    translations(model, strategy, beam_size=beam, max_len_b=8)
    return steps


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("groups, beam", [(2, 4), (3, 6), (4, 4)])
def test_hypotheses_stay_in_their_group(seed, groups, beam):
    """Row r is of group r % groups, and the best of its group that go on have its rows."""
    steps = rows_of_groups(Words(seed, end=1), groups, beam)
    for (before, (_, words, rows)), (after, _) in zip(steps, steps[1:]):
        for group in range(groups):
            of_group = [
                [*before[row].tolist(), word]
                for word, row in zip(words[0].tolist(), rows[0].tolist())
                if row % groups == group and word != END
            ]  # the best first; their scores are without the penalty
            assert after[group::groups].tolist() == of_group[: beam // groups]


def test_the_best_of_a_group_that_end_are_stored():
    """Without a penalty all groups are the search with a beam of their size."""
    for seed in range(6):
        model = Words(seed, end=1)
        strategy = search.DiverseBeamSearch(WORDS, 3, 0.0)
        (nbest,) = translations(model, strategy, beam_size=6, max_len_b=8)
        (small,) = translations(model, beam_size=2, max_len_b=8)
        assert nbest[::3] == nbest[1::3] == nbest[2::3] == small


def test_lengths_match_with_another_end_symbol():
    strategy = search.LengthConstrainedBeamSearch(WORDS, 1, 0, 1, 0)
    options = dict(beam_size=2, match_source_len=True, eos=5)
    nbest = translations(Words(1), strategy, sizes=(3, 2), **options)
    assert [[len(tokens) for tokens in entries] for entries in nbest] == [[4, 4], [3, 3]]
    assert all(tokens.index(5) == len(tokens) - 1 for entries in nbest for tokens in entries)


@pytest.mark.parametrize("kind", ["ordered", "unordered"])
def test_constraints_hold_with_another_end_symbol(kind):
    packed = pack_constraints([[torch.tensor([6, 7])]])
    for seed in range(4):
        model = Words(seed)
        model.table[:, 5] += 4  # most hypotheses would end early
        strategy = CONSTRAINED(WORDS, kind)
        options = dict(beam_size=3, max_len_b=9, eos=5)
        (nbest,) = translations(model, strategy, constraints=packed, **options)
        assert nbest and all((6, 7) in zip(tokens, tokens[1:]) for tokens in nbest)


@pytest.mark.parametrize("kind", ["ordered", "unordered"])
def test_constraints_without_room_are_named(kind, caplog):
    """Four words in three: one of two constraints is there, and the other sentence is whole."""
    packed = pack_constraints([[torch.tensor([6]), torch.tensor([7, 8, 9])], [torch.tensor([6])]])
    with caplog.at_level(logging.WARNING):
        nbest = translations(
            Words(3), CONSTRAINED(WORDS, kind), (3, 3), packed, beam_size=4, max_len_b=3
        )
    assert "no hypothesis of 3 words has all of them" in caplog.text
    assert caplog.text.count("no hypothesis") == 1
    assert all(nbest) and all(6 in tokens for tokens in nbest[1])
    assert all(6 in tokens or tokens[:3] == [7, 8, 9] for tokens in nbest[0])


@pytest.mark.parametrize("kind", ["ordered", "unordered"])
def test_an_empty_translation_has_no_constraints(kind):
    """With --min-len 0; the second sentence has none, and the third no room."""
    packed = pack_constraints([[torch.tensor([6])], []])
    options = dict(beam_size=3, min_len=0)
    model = Words(1, end=12)
    nbest = translations(model, CONSTRAINED(WORDS, kind), (3, 3), packed, max_len_b=5, **options)
    assert all(6 in tokens for tokens in nbest[0]) and nbest[1][0] == [END]
    nbest = translations(model, CONSTRAINED(WORDS, kind), (3, 3), packed, max_len_b=0, **options)
    assert nbest == [[[END]], [[END]]]


@pytest.mark.parametrize("kind", ["ordered", "unordered"])
@pytest.mark.parametrize("seed", [1, 4])
def test_constraints_that_are_ruled_out(kind, seed):
    """A word that must stand there twice, and may not: the search ended in an AssertionError."""
    packed = pack_constraints([[torch.tensor([6]), torch.tensor([6])], [torch.tensor([7, 8])]])
    options = dict(beam_size=5, no_repeat_ngram_size=1, max_len_b=8)
    nbest = translations(Words(seed), CONSTRAINED(WORDS, kind), (3, 3), packed, **options)
    assert all(tokens.count(6) == 1 for tokens in nbest[0])
    assert all((7, 8) in zip(tokens, tokens[1:]) for tokens in nbest[1])


@pytest.mark.parametrize("size", [1, 2, 3])
def test_prefixes_may_repeat_ngrams(size):
    """The words of --prefix-size stay; what follows repeats nothing."""
    prefix = torch.tensor([[6, 7, 6, 7, 6, 7]])
    (nbest,) = translations(
        Words(2), prefix=prefix, beam_size=2, max_len_b=9, no_repeat_ngram_size=size
    )
    for tokens in nbest:
        assert tokens[:6] == prefix[0].tolist() and tokens[-1] == END
        ngrams = list(zip(*(tokens[start:] for start in range(size))))
        later = ngrams[7 - size : -1]  # those that end behind the prefix, without the end symbol
        assert all(later.count(ngram) + ngrams[: 7 - size].count(ngram) == 1 for ngram in later)
