"""--max-len-a: how long a translation may be does not depend on the sentences beside it."""

import pytest
import torch
from common.words import numbered_words
from fairseq import search
from fairseq.sequence_generator import SequenceGenerator
from fairseq.token_generation_constraints import pack_constraints

from fairseq_ext.common.beam_search import BeamSearchGenerator

PAD, END = 1, 2
ROWS = [[5, 6, 7, 8, 9, END], [PAD] * 3 + [9, 4, END], [END] + [PAD] * 5]
SLOPE, CONSTANT = 1.5, -1


class Words(torch.nn.Module):
    """log P of the next word depends on the word before; ends are unlikely."""

    _is_generation_fast = False

    def __init__(self, words):
        super().__init__()
        torch.manual_seed(2)
        self.table = torch.randn(len(words), len(words))
        self.table[:, END] -= 3

    def forward(self, tokens):
        return self.table[tokens], None

    def get_normalized_probs(self, output, log_probs, sample=None):
        return output[0].log_softmax(2)


def generator_of(kind, strategy=search.BeamSearch, **options):
    words = numbered_words(20)
    options = {"max_len_a": SLOPE, "max_len_b": CONSTANT, "beam_size": 4, **options}
    strategy = strategy(words) if isinstance(strategy, type) else strategy
    return kind([Words(words)], words, search_strategy=strategy, **options)


def translated(generator, rows, prefixes=None, constraints=None, **more):
    """The n-best lists of the sources, as (tokens, score)."""
    tokens = torch.tensor(rows)
    net_input = {"src_tokens": tokens, "src_lengths": tokens.ne(PAD).sum(1)}
    sample = {"id": torch.arange(len(rows)) + 3, "net_input": net_input, **more}
    prefixes = None if prefixes is None else torch.tensor(prefixes)
    return [
        [(entry["tokens"].tolist(), pytest.approx(entry["score"].item())) for entry in nbest]
        for nbest in generator.generate(
            None, sample, prefix_tokens=prefixes, constraints=constraints
        )
    ]


def check_alone_and_together(generator, longest, prefixes=None):
    together = translated(generator, ROWS, prefixes)
    for number, (row, limit) in enumerate(zip(ROWS, longest)):
        prefix = None if prefixes is None else [prefixes[number][:limit]]
        (alone,) = translated(generator, [[word for word in row if word != PAD]], prefix)
        assert together[number] == alone
        assert max(len(tokens) for tokens, _ in alone) == limit + 1  # and the end symbol


@pytest.mark.parametrize("beam", [1, 4])
@pytest.mark.parametrize("kind", [SequenceGenerator, BeamSearchGenerator])
def test_limits_are_those_of_a_sentence_alone(kind, beam):
    # 1.5 * 6 - 1, 1.5 * 3 - 1 and 1.5 * 1 - 1, which is less than one word
    check_alone_and_together(generator_of(kind, beam_size=beam, min_len=0), [8, 3, 0])


def test_the_model_sets_a_limit_too(monkeypatch):
    monkeypatch.setattr(Words, "max_decoder_positions", lambda self: 6, raising=False)
    for kind in (SequenceGenerator, BeamSearchGenerator):
        check_alone_and_together(generator_of(kind, min_len=0), [5, 3, 0])


@pytest.mark.parametrize("kind", [SequenceGenerator, BeamSearchGenerator])
def test_a_translation_has_the_words_that_min_len_asks_for(kind):
    lists = translated(generator_of(kind, min_len=5), ROWS)
    assert [{len(tokens) for tokens, _ in nbest} for nbest in lists][1:] == [{6}, {6}]


def test_prefixes_end_at_the_limit():
    prefixes = [[4, 5, 6, 7], [8, 9, 10, 11], [12, 13, PAD, PAD]]
    for kind in (SequenceGenerator, BeamSearchGenerator):
        check_alone_and_together(generator_of(kind, min_len=0), [8, 3, 0], prefixes)


@pytest.mark.parametrize("slope", [0, SLOPE])
@pytest.mark.parametrize("kind", [SequenceGenerator, BeamSearchGenerator])
def test_an_empty_prefix_is_an_empty_translation(kind, slope):
    generator = generator_of(kind, max_len_a=slope, max_len_b=4)
    first, second, third = translated(generator, ROWS, [[5, END], [END, PAD], [6, 7]])
    assert [tokens for tokens, _ in second] == [[END]]
    # the others are not changed by it
    assert [first, third] == translated(generator, [ROWS[0], ROWS[2]], [[5, END], [6, 7]])
    assert translated(generator, ROWS[1:2], [[END]]) == [second]


def test_other_searches():
    words = numbered_words(20)
    strategies = (
        search.DiverseBeamSearch(words, 2, 0.5),
        search.DiverseSiblingsSearch(words, 0.5),
        search.Sampling(words, sampling_topk=1),
        search.PrefixConstrainedBeamSearch(words, lambda batch, tokens: list(range(2, 12))),
    )
    for strategy in strategies:
        for kind in (SequenceGenerator, BeamSearchGenerator):
            generator = generator_of(kind, strategy, min_len=1, max_len_b=0)
            check_alone_and_together(generator, [9, 4, 1])


@pytest.mark.parametrize("kind", ["ordered", "unordered"])
@pytest.mark.parametrize("beam", [1, 4])
def test_constraints(kind, beam):
    """Each sentence has its limit, also where that leaves no room for its constraints."""
    constraints = [[torch.tensor([6]), torch.tensor([7, 8])], [torch.tensor([9])], []]
    for lists in (constraints, constraints[::-1]):
        strategy = search.LexicallyConstrainedBeamSearch(numbered_words(20), kind)
        generator = generator_of(SequenceGenerator, strategy, beam_size=beam, min_len=0)
        together = translated(generator, ROWS, constraints=pack_constraints(lists))
        for row, limit, entries, words in zip(ROWS, [8, 3, 0], together, lists):
            source = [word for word in row if word != PAD]
            (alone,) = translated(generator, [source], constraints=pack_constraints([words]))
            assert entries == alone
            assert max(len(tokens) for tokens, _ in alone) == limit + 1
            needed = {word for phrase in words for word in phrase.tolist()}
            assert limit == 0 or all(needed <= set(tokens) for tokens, _ in alone)


def test_tokens_in_front_are_not_counted():
    generator = generator_of(BeamSearchGenerator, first_tokens=1)
    assert max(len(tokens) for tokens, _ in translated(generator, ROWS)[0]) == 6 + 1
    (nbest,) = translated(generator, ROWS[:1], [[4]])  # by fairseq's own loop
    assert max(len(tokens) for tokens, _ in nbest) == 6 + 1


def test_recordings_have_lengths():
    generator = generator_of(SequenceGenerator, max_len_a=0.5, max_len_b=1)
    features = torch.zeros(2, 8, 3)
    padding = torch.arange(8) >= torch.tensor([[8], [4]])
    for net_input in (
        {"src_tokens": features, "src_lengths": torch.tensor([8, 4])},
        {"source": features, "padding_mask": padding},
    ):
        nbest = generator.generate(None, {"net_input": net_input})
        assert [max(len(entry["tokens"]) for entry in entries) for entries in nbest] == [6, 4]
