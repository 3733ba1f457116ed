"""Dual inference (Eq. 7) against NumPy loops."""

import argparse
import copy
import itertools
import math

import numpy as np
import pytest
import torch
from common.words import dictionary_with
from dual.support import fill
from fairseq.models.lstm import LSTMDecoder, LSTMEncoder, LSTMModel
from toy_sentences import END, PAD, random_sentence

from fairseq_ext.dual import reranker
from fairseq_ext.dual.reranker import DualReranker, PairScorer, Terms, dual_score
from properties import collate
from reference import dual as reference
from reference.layers import log_softmax

SHAPE = reference.Shape(12, 20, 3, 1)
LENGTHS = [5, 1, 3]


# ---------------------------------------------------------------- the equation


class Pair:
    """A dual model of xx and yy with the reference's numbers, and its task."""

    def __init__(self, dual_task):
        self.task, self.model = dual_task("--dropout", 0, "--layers", 1)
        rng = np.random.default_rng(23)
        self.words = len(self.task.dictionaries["xx"])
        self.params = {}
        for lang in ("xx", "yy"):
            self.params[lang] = reference.random_parameters(SHAPE, self.words, rng)
            fill(self.model.components[lang], self.params[lang], SHAPE)
        self.model.eval()
        self.sources = [random_sentence(rng, length, self.words) for length in LENGTHS]
        self.targets = [random_sentence(rng, length, self.words) for length in (1, 6, 2)]

    def log_p(self, target, source, pair):
        """log P(target | source) by loops."""
        reader, writer = (self.params[lang] for lang in pair.split("-"))
        return reference.log_likelihood(source, target, reader, writer, SHAPE, PAD)

    def token_probabilities(self, target, source, pair):
        """P(y_t | y_<t, source) of each token by loops."""
        reader, writer = (self.params[lang] for lang in pair.split("-"))
        previous = reference.shifted(target, END)
        scores = reference.translate(source, previous, reader, writer, SHAPE, PAD)
        return [np.exp(log_softmax(row)[token]) for row, token in zip(scores, target)]

    def search(self, alpha=1.0, norm="tokens", **of_search):
        """The n-best lists of the sources with these options of the task."""
        self.task.pair = "xx-yy"
        self.task.cfg.dual_alpha, self.task.cfg.dual_length_norm = alpha, norm
        args = argparse.Namespace(beam=4, max_len_b=6, **of_search)
        generator = self.task.build_generator([self.model], args)
        tokens = collate([torch.tensor(source) for source in self.sources], PAD, left=True)
        lengths = torch.tensor([len(source) for source in self.sources])
        inputs = {"src_tokens": tokens, "src_lengths": lengths}
        sample = {"id": torch.arange(3), "net_input": inputs}
        return self.task.inference_step(generator, [self.model], sample)


@pytest.fixture(scope="module")
def pair(dual_task):
    return Pair(dual_task)


@pytest.mark.parametrize("left_pad", [True, False])
@pytest.mark.parametrize("limit", [1, 2**26])
def test_reverse_is_the_likelihood_of_the_source(pair, left_pad, limit, monkeypatch):
    """Rows of other lengths beside it, and the division into parts, change nothing."""
    monkeypatch.setitem(reranker.MOST_LOGITS, "cpu", limit)
    models = [pair.model.direction("yy-xx")]
    reverse = PairScorer(models, pair.task.dictionaries["xx"], left_pad)
    rows = [[torch.tensor(words) for words in side] for side in (pair.targets, pair.sources)]
    with torch.no_grad():
        scores = reverse(*rows)
    expected = [pair.log_p(x, y, "yy-xx") for x, y in zip(pair.sources, pair.targets)]
    assert scores.tolist() == pytest.approx(expected, rel=1e-4)
    # the broken twin: the other model gives something else
    others = [pair.log_p(x, y, "xx-yy") for x, y in zip(pair.sources, pair.targets)]
    assert np.abs(np.subtract(others, expected)).min() > 1e-2


def test_reverse_models_are_told_the_lengths_of_what_they_read():
    """A Transformer does not ask for them; an LSTM does."""
    told = []

    class Model(torch.nn.Module):
        def forward(self, src_tokens, src_lengths, prev_output_tokens):
            told.append((src_tokens.ne(PAD).sum(dim=1).tolist(), src_lengths.tolist()))
            return torch.zeros(*prev_output_tokens.shape, 6)

        def get_normalized_probs(self, output, log_probs):
            return output.log_softmax(dim=2) if log_probs else output.softmax(dim=2)

    words = dictionary_with("a", "b")
    read = [torch.tensor([4, 5, END]), torch.tensor([END])]
    scores = PairScorer([Model()], words, True)(read, [torch.tensor([5, END])] * 2)
    assert told == [([3, 1], [3, 1])]
    assert scores.tolist() == pytest.approx([-2 * np.log(6)] * 2)


def test_reverse_models_read_the_longest_first():
    """fairseq's lstm packs its input; the scores come back in the order of the rows."""
    words = dictionary_with("a", "b", "c", "d")
    torch.manual_seed(1)
    encoder = LSTMEncoder(words, embed_dim=4, hidden_size=4, left_pad=True)
    decoder = LSTMDecoder(
        words, embed_dim=4, hidden_size=4, out_embed_dim=4, encoder_output_units=4
    )
    reverse = PairScorer([LSTMModel(encoder, decoder)], words, True)
    read = [torch.tensor(row) for row in ([4, END], [5, 6, 7, END], [END], [6, 4, END])]
    sources = [torch.tensor(row) for row in ([7, END], [5, 4, END], [6, END], [4, END])]
    with torch.no_grad():
        scores = reverse(read, sources)
        alone = [reverse([y], [x]).item() for y, x in zip(read, sources)]
    assert scores.tolist() == pytest.approx(alone, rel=1e-5)
    assert len(set(scores.tolist())) == 4


@pytest.mark.parametrize("left, short", [(True, [1, 4, END]), (False, [4, END, 1])])
def test_what_is_read_is_padded_on_the_side_of_the_models(left, short):
    class Model(torch.nn.Module):
        def forward(self, src_tokens, src_lengths, prev_output_tokens):
            assert src_tokens.tolist() == [[4, 5, END], short]
            assert prev_output_tokens.tolist() == [[END, 5], [END, 1]]
            return torch.zeros(*prev_output_tokens.shape, 6)

        def get_normalized_probs(self, output, log_probs):
            return output

    reverse = PairScorer([Model()], dictionary_with("a", "b"), left)
    read, written = ([4, 5, END], [4, END]), ([5, END], [END])
    reverse(*([torch.tensor(row) for row in rows] for rows in (read, written)))


def test_improbable_sources_do_not_underflow():
    """log P = -110 of each token: a probability that float32 does not have."""

    class Model(torch.nn.Module):
        def forward(self, src_tokens, src_lengths, prev_output_tokens):
            return torch.full((*prev_output_tokens.shape, 6), -110.0)

        def get_normalized_probs(self, output, log_probs):
            return output if log_probs else output.exp()

    words = dictionary_with("a", "b")
    reverse = PairScorer([Model(), Model()], words, True)
    score = reverse([torch.tensor([4, END])], [torch.tensor([5, END])])
    assert score.item() == pytest.approx(-220)


def test_words_of_half_precision_add_up_in_single_precision():
    """float16 has no odd number above 2048."""

    class Model(torch.nn.Module):
        def forward(self, src_tokens, src_lengths, prev_output_tokens):
            return torch.full((*prev_output_tokens.shape, 6), -111.0, dtype=torch.float16)

        def get_normalized_probs(self, output, log_probs):
            return output

    reverse = PairScorer([Model()], dictionary_with("a", "b"), True)
    score = reverse([torch.tensor([4, END])], [torch.tensor([5] * 40 + [END])])
    assert score.dtype == torch.float32 and score.item() == -111 * 41


def test_several_models_give_the_mean_of_their_probabilities(pair):
    models = [pair.model.direction(direction) for direction in ("yy-xx", "xx-yy")]
    reverse = PairScorer(models, pair.task.dictionaries["xx"], True)
    x, y = [7, END], [5, 6, END]
    with torch.no_grad():
        score = reverse([torch.tensor(y)], [torch.tensor(x)])
    both = [pair.token_probabilities(x, y, direction) for direction in ("yy-xx", "xx-yy")]
    expected = sum(np.log((first + second) / 2) for first, second in zip(*both))
    assert score.item() == pytest.approx(expected, rel=1e-4)
    assert abs(np.log(both).sum(axis=1) - expected).min() > 1e-3


def test_of_matched_lengths_the_end_symbol_counts(pair):
    """In Eq. 7, l_f is the loss of whole sentences; for that search the end symbol is certain."""
    ranked = pair.search(0.3, match_source_len=True)
    for source, nbest in zip(pair.sources, ranked):
        # an empty source has one translation, and the search rules the others out
        for hypothesis in nbest[: 1 if source == [END] else None]:
            target, terms = hypothesis["tokens"].tolist(), hypothesis["terms"]
            log_f, log_g = pair.log_p(target, source, "xx-yy"), pair.log_p(source, target, "yy-xx")
            assert terms.log_y_x == pytest.approx(log_f, rel=1e-4)
            score = 0.3 * log_f / len(target) + 0.7 * log_g / len(source)
            assert hypothesis["score"].item() == pytest.approx(score, rel=1e-4)
            # the broken twin: what the search has computed is without the end symbol
            assert abs(hypothesis["positional_scores"].sum().item() - log_f) > 1e-2


def test_translations_are_as_long_as_the_reverse_models_read(pair, monkeypatch):
    """Learned positions beyond the last one ended in an IndexError."""
    monkeypatch.setattr(pair.model, "_max_positions", (3, 1024))
    assert max(len(h["tokens"]) for nbest in pair.search(0.3) for h in nbest) == 3
    assert max(len(h["tokens"]) for nbest in pair.search() for h in nbest) > 3


def test_a_source_that_the_reverse_models_do_not_write_is_named(pair, monkeypatch):
    """It ended in an IndexError as well; a task whose searches are built first asks for others."""
    monkeypatch.setattr(pair.task, "_longest_source", math.inf)
    monkeypatch.setattr(pair.model, "_max_positions", (1024, max(LENGTHS)))
    assert len(pair.search(0.3)) == len(LENGTHS)
    monkeypatch.setattr(pair.model, "_max_positions", (1024, max(LENGTHS) - 1))
    message = "--dual-alpha 0.3: a source of 5 tokens, .*; allowed: --max-source-positions 4 with"
    with pytest.raises(ValueError, match=message):
        pair.search(0.3)
    assert pair.task.max_positions() == (4, 1024)
    assert len(pair.search()) == len(LENGTHS)


def test_the_beam_is_ranked_by_eq_7(pair):
    beams = [[h["tokens"].tolist() for h in nbest] for nbest in pair.search()]
    logs = [
        [(pair.log_p(y, x, "xx-yy"), pair.log_p(x, y, "yy-xx")) for y in beam]
        for x, beam in zip(pair.sources, beams)
    ]
    orders = set()
    for alpha, norm in itertools.product((0.0, 0.4, 0.9), ("tokens", "none")):
        ranked = pair.search(alpha, norm)
        for x, beam, logged, nbest in zip(pair.sources, beams, logs, ranked):
            losses = [
                reference.dual_objective(f, len(y), g, len(x), alpha, norm == "tokens")
                for y, (f, g) in zip(beam, logged)
            ]
            order = sorted(range(len(beam)), key=losses.__getitem__)
            assert [hypothesis["rank"] for hypothesis in nbest] == order
            assert [h["tokens"].tolist() for h in nbest] == [beam[place] for place in order]
            scores = [-float(hypothesis["score"]) for hypothesis in nbest]
            assert scores == pytest.approx(sorted(losses), rel=1e-4)
            orders.add((tuple(x), *order))
    # neither plain beam search nor one alpha for all would pass
    assert len(orders) > len(pair.sources)


class MatchedLengths:
    """A search that has ruled its second hypothesis out, as --match-source-len does: by -inf."""

    def generate(self, models, sample):
        scores, entries = [-1.0, -math.inf, -2.0], []
        for place, score in enumerate(scores):
            tokens = torch.tensor([7 + place, END])
            positional = torch.tensor([-2.0, 0.0]) if place != 1 else torch.tensor([-0.1, 0.0])
            entry = {"tokens": tokens, "score": torch.tensor(score)}
            entries.append({**entry, "positional_scores": positional})
        return [entries]


@pytest.mark.parametrize("alpha", [0, 0.5])
def test_what_the_search_rules_out_comes_last(alpha):
    def reverse(candidates, sources):
        return torch.tensor([-3.0, -0.1, -2.0])

    reverse.pad = PAD
    ranker = reranker.DualReranker(MatchedLengths(), reverse, alpha, "tokens")
    (nbest,) = ranker.generate([], {"net_input": {"src_tokens": torch.tensor([[5, END]])}})
    assert [hypothesis["rank"] for hypothesis in nbest] == [2, 0, 1]
    assert [math.isfinite(hypothesis["score"]) for hypothesis in nbest] == [True, True, False]
    # the terms are those of Eq. 7 all the same
    assert nbest[2]["terms"].log_x_y == pytest.approx(-0.1)


def test_alpha_1_is_the_plain_search(pair):
    pair.search()
    generator = pair.task.build_generator([pair.model], argparse.Namespace(beam=4))
    assert type(generator).__name__ == "BeamSearchGenerator"


def test_a_reranker_can_be_copied():
    """It offers the attributes of its generator, also before it has one."""
    search = argparse.Namespace(pad=PAD)
    assert copy.deepcopy(DualReranker(search, None, 0.5, "tokens")).pad == PAD


def test_scores_of_arrays_and_of_one():
    terms = Terms(-6.0, 3, -10.0, 4)
    assert dual_score(terms, 0.25) == pytest.approx(0.25 * -2 + 0.75 * -2.5)
    assert dual_score(terms, 0.25, "none") == pytest.approx(0.25 * -6 + 0.75 * -10)
    both = Terms(*(np.array([value, 2 * value]) for value in terms))
    assert dual_score(both, 0.25).tolist() == pytest.approx([-2.375, -2.375])
