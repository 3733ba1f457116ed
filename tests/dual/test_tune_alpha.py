"""`fairseq-ext tune-alpha`: the curve and the choice; test_reranker_commands.py runs it."""

import pytest

from fairseq_ext import __main__ as command
from fairseq_ext.dual.commands import tune_alpha
from fairseq_ext.dual.commands.nbest_lists import FAULTY, Candidate
from fairseq_ext.dual.commands.tune_alpha import Point
from fairseq_ext.dual.reranker import Terms
from fairseq_ext.tools.evaluate.scores import Metric

# two sentences: the beam's first, and what the reverse model likes better
LISTS = [
    [
        Candidate("a bad line", Terms(-3.0, 3, -12.0, 4)),
        Candidate("a good line", Terms(-6.0, 3, -4.0, 4)),
    ],
    [
        Candidate("another good line", Terms(-4.0, 4, -4.0, 2)),
        Candidate("the other line", Terms(-20.0, 4, -3.0, 2)),
    ],
]
REFERENCES = ["a good line", "another good line"]


def test_choice_and_curve():
    # by token: -1 and -3 against -2 and -1: they are equal at alpha = 2/3
    assert tune_alpha.chosen(LISTS[0], 0.7, "tokens") == "a bad line"
    assert tune_alpha.chosen(LISTS[0], 0.6, "tokens") == "a good line"
    # by sentence: -3 and -12 against -6 and -4: at 8/11
    assert tune_alpha.chosen(LISTS[0], 0.7, "none") == "a good line"
    points = tune_alpha.curve(LISTS, REFERENCES, [1, 0.6, 0, 0.6], Metric("ter"), "tokens")
    assert [(point.alpha, point.changed) for point in points] == [(0, 1), (0.6, 0.5), (1, 0)]
    assert points[1].score == 0 < points[2].score < points[0].score


def test_alpha_1_is_the_beam_whatever_the_terms_say():
    # with --lenpen or --dual-length-norm none log P(y|x) may be higher for another one
    nbest = [Candidate("first", Terms(-9.0, 2, 0, 1)), Candidate("second", Terms(-1.0, 2, 0, 1))]
    assert tune_alpha.chosen(nbest, 1, "tokens") == "first"


@pytest.mark.parametrize("last", [0.9, 1.0])
def test_the_legend_covers_no_curve(last, tmp_path):
    points = [Point(alpha, 20 + alpha, 0.1) for alpha in (0.0, 0.5, last)]
    figure = tune_alpha.draw(points, points[-1], "BLEU")
    figure.savefig(tmp_path / "picture.png")
    (axes,) = figure.axes
    legend = axes.get_legend()
    assert (legend is None) == (last < 1)  # without the line of plain beam search
    assert legend is None or not legend.get_window_extent().overlaps(axes.bbox)


def test_the_best_point():
    points = [Point(0, 3, 1), Point(0.5, 7, 0.5), Point(0.9, 7, 0.1), Point(1, 5, 0)]
    assert tune_alpha.best(points, "bleu").alpha == 0.9
    assert tune_alpha.best(points, "ter").alpha == 0


@pytest.mark.parametrize("error", FAULTY)
def test_what_does_not_load_is_no_traceback(tmp_path, monkeypatch, capsys, error):
    def fails(cfg):
        raise error("of another size")

    monkeypatch.setattr(tune_alpha, "nbest_lists", fails)
    reference = tmp_path / "ref"
    reference.write_text("a\n", encoding="utf-8")
    words = ["--ref", reference, "--output", tmp_path / "a.png", "--", "DATA", "--path", "x.pt"]
    assert command.main(["tune-alpha", *map(str, words)]) == 2
    assert f"{error.__name__}: of another size" in capsys.readouterr().err


@pytest.mark.parametrize("metric, is_warned", [("bleu", True), ("ter", True), ("chrf", False)])
def test_texts_without_blanks(tmp_path, monkeypatch, capsys, metric, is_warned):
    """BLEU is 0 for every alpha, so that it chooses none."""
    reference = tmp_path / "ref"
    reference.write_text(
        "一个戴着橙色帽子的男人正看着什么东西。\n两只狗跑过草地。\n", encoding="utf-8"
    )
    monkeypatch.setattr(tune_alpha, "nbest_lists", lambda cfg: LISTS)
    words = ["--ref", reference, "--output", tmp_path / "a.png", "--metric", metric]
    assert command.main(["tune-alpha", *map(str, words), "--", "DATA", "--path", "x.pt"]) == 0
    warned = f"warning: {reference}: no blanks between words" in capsys.readouterr().err
    assert warned == is_warned


def test_bad_options(tmp_path, capsys):
    reference = tmp_path / "ref"
    reference.write_text("a\n", encoding="utf-8")

    def fails(*words, more=("DATA", "--path", "x.pt"), output="a.png"):
        start = ["tune-alpha", "--ref", str(reference), "--output", str(tmp_path / output)]
        assert command.main([*start, *words, "--", *more]) == 2
        return capsys.readouterr().err

    assert "--alpha 1.5: allowed: 0 to 1" in fails("--alpha", "0.5", "1.5")
    assert ".png, .pdf, .svg" in fails(output="a.txt")
    assert "--path CHECKPOINT is missing" in fails(more=("DATA",))
    other = ("DATA", "--path", "x.pt", "--task", "translation")
    assert "--task translation: allowed: dual_translation" in fails(more=other)
    assert "data 'DATA': not a folder" in fails()
    assert "there is no such folder" in fails(output="none/a.png")
    table = tmp_path / "read.md"
    assert f"{table} is read as well" in fails("--ref", str(table), output="read.png")
    more = ("DATA", "--path", "x.pt", "--prefix-size", "2")
    assert "--prefix-size 2: tune-alpha does not look at it" in fails(more=more)
    more = ("DATA", "--path", "x.pt", "--lm-path", "lm.pt")
    assert "--lm-path lm.pt: tune-alpha does not look at it" in fails(more=more)
    more = ("DATA", "--path", "x.pt", "--results-path", "out")
    assert "--results-path out: tune-alpha does not look at it" in fails(more=more)
    more = ("DATA", "--path", "x.pt", "--num-shards", "2", "--shard-id", "1")
    assert "--num-shards 2: alpha is chosen on the whole set" in fails(more=more)
    with pytest.raises(SystemExit):
        command.main(["tune-alpha", "--ref", "r", "--output", "o.png"])
    assert "the following arguments are required: -- ..." in capsys.readouterr().err
