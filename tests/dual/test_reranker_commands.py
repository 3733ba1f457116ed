"""Dual inference (Eq. 7) through fairseq's commands, and errors of bad input."""

import functools
import shutil

import pytest
import torch
from common.inprocess import generate, hypotheses, interactive, train

from fairseq_ext import __main__ as command
from fairseq_ext.dual.commands.nbest_lists import load_batches, ranking_config
from fairseq_ext.tools.evaluate.scores import Metric

TINY = ("--criterion", "cross_entropy", "--optimizer", "adam", "--lr", 0.01, "--max-tokens", 300)
SEARCH = ("--beam", 4, "--min-len", 3, "--max-len-b", 8)
CLOSE = {"rtol": 0, "atol": 2e-4}  # of numbers as they are printed
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
    assert len(ranked) == len(typed) == 24
    for number, nbest in ranked.items():
        assert [text for _, text in typed[number]] == [text for _, text in nbest]
        scores = [score for score, _ in nbest]
        assert [score for score, _ in typed[number]] == pytest.approx(scores, abs=1e-4)


def test_a_second_checkpoint_that_is_the_same_changes_nothing(checkpoint, search):
    default = search(checkpoint("dual"), "--dual-alpha", 0.3)
    named = search(checkpoint("dual"), "--dual-alpha", 0.3, "--dual-path", checkpoint("dual"))
    assert printed(default) == printed(named)


def test_two_stock_models(checkpoint, search):
    forward_model, backward_model = checkpoint("xx-yy"), checkpoint("yy-xx")
    plain = search(forward_model, task="translation")
    assert printed(search(forward_model, "--dual-alpha", 1)) == printed(plain)
    ranked = search(forward_model, "--dual-alpha", 0.3, "--dual-path", backward_model)
    before, after = hypotheses(plain), hypotheses(ranked)
    assert [nbest[0] for nbest in after.values()] != [nbest[0] for nbest in before.values()]
    for number, nbest in after.items():
        assert sorted(text for _, text in nbest) == sorted(text for _, text in before[number])
    # the dual model scores the candidates of a stock model, and the other way round
    assert printed(search(forward_model, "--dual-alpha", 0.3, "--dual-path", checkpoint("dual")))
    assert printed(search(checkpoint("dual"), "--dual-alpha", 0.3, "--dual-path", backward_model))


def test_a_model_that_was_trained_without_the_names_of_its_languages(checkpoint, search, tmp_path):
    """Those of its dictionaries, which its checkpoint records, tell them."""
    state = torch.load(checkpoint("yy-xx"), weights_only=True)
    state["cfg"]["task"].update(source_lang=None, target_lang=None)
    torch.save(state, tmp_path / "unnamed.pt")
    ranked = (
        search(checkpoint("xx-yy"), "--dual-alpha", 0.3, "--dual-path", path)
        for path in (checkpoint("yy-xx"), tmp_path / "unnamed.pt")
    )
    assert len({"\n".join(printed(output)) for output in ranked}) == 1
    stored = state["extra_state"]["dictionaries"]
    state["extra_state"]["dictionaries"] = {lang: stored[lang] for lang in ("xx", "yy")}
    torch.save(state, tmp_path / "unnamed.pt")
    with pytest.raises(ValueError, match="unnamed.pt: it translates xx-yy; allowed: .* of yy-xx"):
        search(checkpoint("xx-yy"), "--dual-alpha", 0.3, "--dual-path", tmp_path / "unnamed.pt")


def test_a_stock_model_scores_what_is_as_long_as_its_source(checkpoint, search):
    """It is scored once more; prepared for inference, its eval() returns None (fairseq 0.12.2)."""
    options = ("--dual-path", checkpoint("yy-xx"), "--match-source-len", "--min-len", 1)
    output = search(checkpoint("xx-yy"), "--dual-alpha", 0.3, *options)
    lines = [line.split("\t") for line in output.splitlines() if line.startswith("S-")]
    sources = {int(place[2:]): text.split() for place, text in lines}
    nbest_lists = hypotheses(output)
    assert nbest_lists.keys() == sources.keys() and len(sources) == 24
    for number, nbest in nbest_lists.items():
        assert len(nbest[0][1].split()) == len(sources[number])


def of_words(output, letter):
    """One tensor (words, ..) of the numbers in the lines P-, or of the cells in the lines A-."""
    lines = [line.split("\t") for line in output.splitlines() if line.startswith(f"{letter}-")]
    rows = [line.split() for _, line in sorted(lines)]
    return [torch.tensor([list(map(float, cell.split(","))) for cell in row]) for row in rows]


def test_an_ensemble_with_a_stock_model_is_the_mean_of_both(checkpoint, search):
    """The probabilities of the words of references, and their attention to the source."""
    dual, stock = str(checkpoint("dual")), str(checkpoint("xx-yy"))
    outputs = [
        search(path, "--score-reference", "--print-alignment", "soft")
        for path in (dual, stock, f"{dual}:{stock}", f"{stock}:{dual}")
    ]
    first, second, *together = [of_words(output, "P") for output in outputs]
    for scores in together:
        for before, after, mean in zip(first, second, scores):
            torch.testing.assert_close(mean.exp2(), (before.exp2() + after.exp2()) / 2, **CLOSE)
    first, second, *together = [of_words(output, "A") for output in outputs]
    for weights in together:
        for before, after, mean in zip(first, second, weights):
            torch.testing.assert_close(mean, (before + after) / 2, **CLOSE)


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
        nbest = hypotheses(search(checkpoint("dual"), "--dual-alpha", alpha))
        lines = [nbest[number][0][1] for number in range(24)]
        scores[alpha] = metric.score(metric.statistics(lines, references).sum(axis=0))
        assert float(score) == pytest.approx(scores[alpha])
    assert len(set(scores.values())) == 3
    assert printed_table.rstrip().endswith(f"--dual-alpha {float(max(scores, key=scores.get)):g}")
    assert output.read_bytes().startswith(b"\x89PNG")
    assert output.with_suffix(".md").read_text(encoding="utf-8") in printed_table


def test_tune_alpha_reads_the_checkpoint_with_the_suffix(checkpoint, toy_corpus, tmp_path):
    shutil.copy(checkpoint("dual"), tmp_path / "model-late.pt")
    words = [toy_corpus.two, "-s", "xx", "-t", "yy", "--path", tmp_path / "model.pt", "--cpu"]
    words += ["--checkpoint-suffix=-late"]
    _, models, _ = load_batches(ranking_config([str(word) for word in words]))
    assert len(models) == 1
