"""Diverse searches against their equations, in NumPy."""

import numpy
import pytest
import torch
from common.words import numbered_words
from fairseq import search
from fairseq.sequence_generator import SequenceGenerator

END, SIZE = 2, 12
WORDS = numbered_words(SIZE)


class Words(torch.nn.Module):
    """log P of the next word depends on the word before."""

    def __init__(self, seed):
        super().__init__()
        torch.manual_seed(seed)
        self.table = 2 * torch.randn(SIZE, SIZE)
        self.table[:, 1] = -60  # padding

    def forward(self, tokens):
        return self.table[tokens], None

    def get_normalized_probs(self, output, log_probs, sample=None):
        return output[0].log_softmax(2)


def log_p_of(model, words):
    """log P of each word after the words before it (T,), from the end symbol on."""
    table = model.table.double().log_softmax(1).numpy()
    return [table[before, word] for before, word in zip([END, *words], words)]


def nbest_of(model, strategy, beam, sources=1, **options):
    generator = SequenceGenerator(
        [model], WORDS, search_strategy=strategy, beam_size=beam, **options
    )
    source = torch.tensor([[4, 5, END]] * sources)
    sample = {"net_input": {"src_tokens": source, "src_lengths": torch.full((sources,), 3)}}
    return generator.generate(None, sample)


def check_scores(model, nbest):
    """The scores are those of the model."""
    for entry in nbest:
        log_p = log_p_of(model, entry["tokens"].tolist())
        assert entry["positional_scores"].tolist() == pytest.approx(log_p, abs=1e-4)
        assert entry["score"].item() == pytest.approx(numpy.mean(log_p), abs=1e-4)
    scores = [entry["score"].item() for entry in nbest]
    assert scores == sorted(scores, reverse=True)


def groups_by_the_paper(model, groups, strength, steps):
    """One hypothesis a group: its words after each step depend on those of the groups before."""
    table = model.table.double().log_softmax(1).numpy().copy()
    table[:, END] = -numpy.inf
    rows = [[END] for _ in range(groups)]
    for _ in range(steps):
        times = numpy.zeros(SIZE)
        for row in rows:
            word = int(numpy.argmax(table[row[-1]] - strength * times))
            times[word] += 1
            row.append(word)
    return [row[1:] + [END] for row in rows]


@pytest.mark.parametrize("strength", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("seed", range(4))
def test_groups_of_one_hypothesis(seed, strength):
    model = Words(seed)
    strategy = search.DiverseBeamSearch(WORDS, 4, strength)
    for nbest in nbest_of(model, strategy, 4, sources=2, max_len_b=5, min_len=5):
        expected = groups_by_the_paper(model, 4, strength, 5)
        assert sorted(entry["tokens"].tolist() for entry in nbest) == sorted(expected)
        check_scores(model, nbest)


@pytest.mark.parametrize("seed", range(4))
def test_a_word_costs_as_often_as_it_was_taken(seed):
    """Two hypotheses a group; the candidates of one step against a sum over those before."""
    torch.manual_seed(seed)
    log_p = torch.randn(3, 6, SIZE).log_softmax(2)
    log_p[0, :, END] += 3  # which ends some of the best
    before = torch.randn(3, 6, 2)
    strategy = search.DiverseBeamSearch(WORDS, 3, 0.7)
    sums, words, rows = strategy.step(2, log_p.clone(), before)
    for sentence in range(3):
        times = numpy.zeros(SIZE)
        for group in range(3):
            entries = [
                (float(log_p[sentence, row, word] + before[sentence, row, 1]), word, row)
                for row in (group, group + 3)
                for word in range(SIZE)
            ]
            entries.sort(key=lambda entry: entry[0] - 0.7 * times[entry[1]], reverse=True)
            of_group = rows[sentence] % 3 == group
            parts = (part[sentence][of_group].tolist() for part in (words, rows, sums))
            present = list(zip(*parts))
            expected = [(word, row, pytest.approx(score)) for score, word, row in entries[:4]]
            assert sorted(present) == sorted(expected, key=lambda entry: entry[:2])
            going_on = [entry[:2] for entry in expected if entry[0] != END]
            assert [entry[:2] for entry in present if entry[0] != END] == going_on
            ends = [word for _, word, _ in entries[:2] if word == END]
            for word in ends + [word for _, word, _ in entries[:4] if word != END][:2]:
                times[word] += 1


@pytest.mark.parametrize("rate", [0.2, 2.0])
def test_siblings(rate):
    """The candidates of a step are the best by S - gamma k'; their scores are S."""
    torch.manual_seed(1)
    log_p, before = torch.randn(2, 3, SIZE).log_softmax(2), torch.randn(2, 3, 4)
    strategy = search.DiverseSiblingsSearch(WORDS, rate)
    sums, words, rows = strategy.step(4, log_p.clone(), before)
    for sentence in range(2):
        entries = []
        for row in range(3):
            scores = (log_p[sentence, row] + before[sentence, row, 3]).tolist()
            order = sorted(range(SIZE), key=lambda word: -scores[word])
            entries += [
                (scores[word] - rate * (rank + 1), scores[word], word, row)
                for rank, word in enumerate(order)
            ]
        best = sorted(entries, reverse=True)[:6]
        assert words[sentence].tolist() == [word for *_, word, _ in best]
        assert rows[sentence].tolist() == [row for *_, row in best]
        assert sums[sentence].tolist() == pytest.approx([score for _, score, *_ in best])


def test_siblings_of_a_whole_search():
    for seed in range(3):
        model = Words(seed)
        strategy = search.DiverseSiblingsSearch(WORDS, 0.8)
        (nbest,) = nbest_of(model, strategy, 4, max_len_b=6)
        check_scores(model, nbest)
