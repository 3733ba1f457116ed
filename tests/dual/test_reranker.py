"""Dual inference (Eq. 7): against NumPy loops, through fairseq's commands, errors of bad input."""

import argparse
import functools
import itertools
import math
import shutil

import numpy as np
import pytest
import torch
from common.inprocess import generate, hypotheses, interactive, train
from common.words import dictionary_with
from dual.support import END, PAD, fill, random_sentence
from fairseq.models.lstm import LSTMDecoder, LSTMEncoder, LSTMModel

from fairseq_ext import __main__ as command
from fairseq_ext.dual import reranker
from fairseq_ext.dual.reranker import PairScorer, Terms, dual_score
from fairseq_ext.tools.evaluate.scores import Metric
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
    monkeypatch.setitem(reranker.LOGITS, "cpu", limit)
    models = [pair.model.direction("yy-xx")]
    reverse = PairScorer(models, pair.task.dictionaries["xx"], left_pad)
    rows = [[torch.tensor(one) for one in side] for side in (pair.targets, pair.sources)]
    with torch.no_grad():
        found = reverse(*rows)
    wanted = [pair.log_p(x, y, "yy-xx") for x, y in zip(pair.sources, pair.targets)]
    assert found.tolist() == pytest.approx(wanted, rel=1e-4)
    # the broken twin: the other model gives something else
    others = [pair.log_p(x, y, "xx-yy") for x, y in zip(pair.sources, pair.targets)]
    assert np.abs(np.subtract(others, wanted)).min() > 1e-2


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
        found = reverse(read, sources)
        alone = [reverse([y], [x]).item() for y, x in zip(read, sources)]
    assert found.tolist() == pytest.approx(alone, rel=1e-5)
    assert len(set(found.tolist())) == 4


def test_improbable_sources_do_not_underflow():
    """log P = -110 of each token: a probability that float32 does not have."""

    class Model(torch.nn.Module):
        def forward(self, src_tokens, src_lengths, prev_output_tokens):
            return torch.full((*prev_output_tokens.shape, 6), -110.0)

        def get_normalized_probs(self, output, log_probs):
            return output if log_probs else output.exp()

    words = dictionary_with("a", "b")
    reverse = PairScorer([Model(), Model()], words, True)
    found = reverse([torch.tensor([4, END])], [torch.tensor([5, END])])
    assert found.item() == pytest.approx(-220)


def test_several_models_give_the_mean_of_their_probabilities(pair):
    models = [pair.model.direction(each) for each in ("yy-xx", "xx-yy")]
    reverse = PairScorer(models, pair.task.dictionaries["xx"], True)
    x, y = [7, END], [5, 6, END]
    with torch.no_grad():
        found = reverse([torch.tensor(y)], [torch.tensor(x)])
    both = [pair.token_probabilities(x, y, each) for each in ("yy-xx", "xx-yy")]
    wanted = sum(np.log((one + other) / 2) for one, other in zip(*both))
    assert found.item() == pytest.approx(wanted, rel=1e-4)
    assert abs(np.log(both).sum(axis=1) - wanted).min() > 1e-3


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


def test_the_beam_is_ranked_by_eq_7(pair):
    beams = [[h["tokens"].tolist() for h in nbest] for nbest in pair.search()]
    logs = [
        [(pair.log_p(y, x, "xx-yy"), pair.log_p(x, y, "yy-xx")) for y in beam]
        for x, beam in zip(pair.sources, beams)
    ]
    orders = set()
    for alpha, norm in itertools.product((0.0, 0.4, 0.9), ("tokens", "none")):
        ranked = pair.search(alpha, norm)
        for x, beam, found, nbest in zip(pair.sources, beams, logs, ranked):
            losses = [
                reference.dual_objective(f, len(y), g, len(x), alpha, norm == "tokens")
                for y, (f, g) in zip(beam, found)
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
        scores, found = [-1.0, -math.inf, -2.0], []
        for place, score in enumerate(scores):
            tokens = torch.tensor([7 + place, END])
            positional = torch.tensor([-2.0, 0.0]) if place != 1 else torch.tensor([-0.1, 0.0])
            entry = {"tokens": tokens, "score": torch.tensor(score)}
            found.append({**entry, "positional_scores": positional})
        return [found]


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


def test_scores_of_arrays_and_of_one():
    terms = Terms(-6.0, 3, -10.0, 4)
    assert dual_score(terms, 0.25) == pytest.approx(0.25 * -2 + 0.75 * -2.5)
    assert dual_score(terms, 0.25, "none") == pytest.approx(0.25 * -6 + 0.75 * -10)
    both = Terms(*(np.array([value, 2 * value]) for value in terms))
    assert dual_score(both, 0.25).tolist() == pytest.approx([-2.375, -2.375])


# ---------------------------------------------------------------- the commands

TINY = ("--criterion", "cross_entropy", "--optimizer", "adam", "--lr", 0.01, "--max-tokens", 300)
SEARCH = ("--beam", 4, "--min-len", 3, "--max-len-b", 8)
ONCE = ("--max-update", 30, "--no-epoch-checkpoints", "--disable-validation", "--dropout", 0)


@pytest.fixture(scope="module")
def checkpoint(toy_corpus, tmp_path_factory):
    """Function ("dual" or a direction of a stock transformer) -> checkpoint, hardly trained."""

    @functools.lru_cache(maxsize=None)
    def make(name):
        folder = tmp_path_factory.mktemp(name)
        options = [toy_corpus.two, *TINY, *ONCE, "--share-all-embeddings", "--save-dir", folder]
        if name == "dual":
            options += ["--task", "dual_translation", "--arch", "dual_transformer_tiny"]
            train(*options, "-s", "xx", "-t", "yy")
        else:
            source, target = name.split("-")
            options += ["--task", "translation", "-s", source, "-t", target]
            options += ["--arch", "transformer"]
            for side in ("encoder", "decoder"):
                options += [f"--{side}-embed-dim", 16, f"--{side}-ffn-embed-dim", 16]
                options += [f"--{side}-layers", 1, f"--{side}-attention-heads", 2]
            train(*options)
        return folder / "checkpoint_last.pt"

    return make


@pytest.fixture(scope="module")
def search(toy_corpus):
    """Function (checkpoint, options...) -> what fairseq-generate prints for xx-yy."""

    def run(path, *options, task="dual_translation"):
        words = [toy_corpus.two, "--task", task, "-s", "xx", "-t", "yy", "--path", path]
        return generate(*words, *SEARCH, "--nbest", 4, *options)

    return run


def printed(output):
    """The lines about hypotheses."""
    return [line for line in output.splitlines() if line[:2] in ("H-", "D-", "P-")]


def test_alpha_1_prints_what_plain_search_prints(checkpoint, search):
    plain = search(checkpoint("dual"))
    assert printed(search(checkpoint("dual"), "--dual-alpha", 1)) == printed(plain)
    ranked = search(checkpoint("dual"), "--dual-alpha", 0.3)
    assert printed(ranked) != printed(plain)
    before, after = hypotheses(plain), hypotheses(ranked)
    assert before.keys() == after.keys() and len(before) == 24
    for number, nbest in after.items():
        scores = [score for score, _ in nbest]
        assert scores == sorted(scores, reverse=True)
        # all candidates of the beam, in another order
        assert sorted(text for _, text in nbest) == sorted(text for _, text in before[number])


def test_interactive_gives_the_same_lists(checkpoint, search, toy_corpus):
    ranked = hypotheses(
        search(checkpoint("dual"), "--dual-alpha", 0.3, "--dual-length-norm", "none")
    )
    words = [toy_corpus.two, "--task", "dual_translation", "-s", "xx", "-t", "yy"]
    words += ["--path", checkpoint("dual"), *SEARCH, "--nbest", 4]
    words += ["--dual-alpha", 0.3, "--dual-length-norm", "none", "--input"]
    words += [toy_corpus.text / "test.xx", "--buffer-size", 24, "--batch-size", 24]
    typed = hypotheses(interactive(*words))
    for number, nbest in ranked.items():
        assert [text for _, text in typed[number]] == [text for _, text in nbest]
        scores = [score for score, _ in nbest]
        assert [score for score, _ in typed[number]] == pytest.approx(scores, abs=1e-4)


def test_a_second_checkpoint_that_is_the_same_changes_nothing(checkpoint, search):
    own = search(checkpoint("dual"), "--dual-alpha", 0.3)
    named = search(checkpoint("dual"), "--dual-alpha", 0.3, "--dual-path", checkpoint("dual"))
    assert printed(own) == printed(named)


def test_two_stock_models(checkpoint, search):
    one, other = checkpoint("xx-yy"), checkpoint("yy-xx")
    plain = search(one, task="translation")
    assert printed(search(one, "--dual-alpha", 1)) == printed(plain)
    ranked = search(one, "--dual-alpha", 0.3, "--dual-path", other)
    before, after = hypotheses(plain), hypotheses(ranked)
    assert [nbest[0] for nbest in after.values()] != [nbest[0] for nbest in before.values()]
    for number, nbest in after.items():
        assert sorted(text for _, text in nbest) == sorted(text for _, text in before[number])
    # the dual model scores the candidates of a stock model, and the other way round
    assert printed(search(one, "--dual-alpha", 0.3, "--dual-path", checkpoint("dual")))
    assert printed(search(checkpoint("dual"), "--dual-alpha", 0.3, "--dual-path", other))


@pytest.mark.parametrize(
    "model, options, message",
    [
        ("dual", ("--dual-alpha", 1.5), "--dual-alpha 1.5: allowed: 0 to 1"),
        ("dual", ("--dual-alpha", -0.1), "--dual-alpha -0.1: allowed: 0 to 1"),
        ("dual", ("--dual-alpha", "nan"), "--dual-alpha nan: allowed: 0 to 1"),
        ("dual", ("--dual-alpha", 0.5, "--score-reference"), "--dual-alpha 0.5 with --score-ref"),
        ("dual", ("--dual-alpha", 0.5, "--dual-path", "none.pt"), "--dual-path none.pt: "),
        ("xx-yy", ("--dual-alpha", 0.5), "translates xx-yy only; name one that translates yy-xx"),
    ],
)
def test_bad_input(checkpoint, search, model, options, message):
    with pytest.raises(ValueError, match=message):
        search(checkpoint(model), *options)


def test_a_stock_model_of_the_other_direction(checkpoint, search):
    with pytest.raises(ValueError, match="--path: the checkpoint translates yy-xx; -s and -t ask"):
        search(checkpoint("yy-xx"))


@pytest.mark.parametrize(
    "digests, message",
    # of versions that recorded none, and of another dictionary
    [({}, "with .*dict.xx.txt"), ({"xx": "9:0"}, "with another dictionary of xx")],
)
def test_a_second_checkpoint_with_other_words(
    digests, message, checkpoint, search, toy_corpus, tmp_path
):
    """As many words in another order: the scores would be of other sentences."""
    shutil.copytree(toy_corpus.two, tmp_path / "other")
    words = tmp_path / "other" / "dict.xx.txt"
    lines = words.read_text(encoding="utf-8").splitlines()
    words.write_text("".join(f"{line}\n" for line in reversed(lines)), encoding="utf-8")
    state = torch.load(checkpoint("yy-xx"), map_location="cpu", weights_only=True)
    state["cfg"]["task"]["data"] = str(tmp_path / "other")
    state["extra_state"]["dictionaries"] = digests
    torch.save(state, tmp_path / "other.pt")
    with pytest.raises(ValueError, match=f"--dual-path .*other.pt: was trained {message}"):
        search(checkpoint("xx-yy"), "--dual-alpha", 0.5, "--dual-path", tmp_path / "other.pt")


def test_a_second_checkpoint_that_does_not_fit(checkpoint, search, tmp_path):
    with pytest.raises(ValueError, match="it translates xx-yy; allowed: a model of yy-xx"):
        search(checkpoint("dual"), "--dual-alpha", 0.5, "--dual-path", checkpoint("xx-yy"))
    state = torch.load(checkpoint("dual"), map_location="cpu", weights_only=True)
    state["model"] = {
        name: tensor[:-1] if "embedding" in name else tensor
        for name, tensor in state["model"].items()
    }
    smaller, garbage = tmp_path / "smaller.pt", tmp_path / "garbage.pt"
    torch.save(state, smaller)
    garbage.write_bytes(b"nothing")
    for path, message in ((smaller, "it does not fit .*two in yy-xx"), (garbage, "")):
        with pytest.raises(ValueError, match=f"--dual-path {path}: {message}"):
            search(checkpoint("dual"), "--dual-alpha", 0.5, "--dual-path", path)


def test_tune_alpha_scores_what_generate_prints(checkpoint, search, toy_corpus, tmp_path, capsys):
    reference, output = toy_corpus.text / "test.yy", tmp_path / "alpha.png"
    words = ["tune-alpha", "--ref", reference, "--output", output, "--metric", "chrf"]
    words += ["--alpha", 0, 0.3, 1, "--", toy_corpus.two, "-s", "xx", "-t", "yy", "--gen-subset"]
    words += ["test", "--path", checkpoint("dual"), *SEARCH]
    words += ["--num-workers", 0, "--cpu"]
    assert command.main([str(word) for word in words]) == 0
    printed_table = capsys.readouterr().out
    points = [line.split("\t") for line in output.with_suffix(".tsv").read_text().splitlines()]
    metric, references = Metric("chrf"), reference.read_text(encoding="utf-8").splitlines()
    scores = {}
    for alpha, score, _ in points[1:]:
        found = hypotheses(search(checkpoint("dual"), "--dual-alpha", alpha))
        lines = [found[number][0][1] for number in range(24)]
        scores[alpha] = metric.score(metric.statistics(lines, references).sum(axis=0))
        assert float(score) == pytest.approx(scores[alpha])
    assert len(set(scores.values())) == 3
    assert printed_table.rstrip().endswith(f"--dual-alpha {float(max(scores, key=scores.get)):g}")
    assert output.read_bytes().startswith(b"\x89PNG")
    assert output.with_suffix(".md").read_text(encoding="utf-8") in printed_table
