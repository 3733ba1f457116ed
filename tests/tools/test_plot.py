"""`fairseq-ext plot`: reading the logs of fairseq-train, and the picture and table made of them."""

import csv
import os
import struct

import pytest
from common.full_disk import largest_file
from tools.sample_logs import INNER, NOISE, VALID, json_lines, simple_lines
from tools.translations import write

from fairseq_ext import __main__ as command
from fairseq_ext.tools.curves import figures, panels, plot
from fairseq_ext.tools.curves.figures import PANEL_INCHES
from fairseq_ext.tools.curves.training_log import read_run


def test_errors_name_what_is_wrong(tmp_path, capsys):
    def fails(*words):
        assert command.main(["plot", *map(str, words)]) == 2
        return capsys.readouterr().err

    picture = tmp_path / "out.png"
    empty = write(tmp_path / "empty.log", NOISE)
    good = write(tmp_path / "good.log", simple_lines(False))
    assert f"LOG {tmp_path / 'none.log'}" in fails(tmp_path / "none.log", "--output", picture)
    message = fails(empty, "--output", picture)
    assert str(empty) in message and f"{len(NOISE)} lines" in message
    message = fails(good, "--output", picture, "--metric", "accuracy")
    assert "--metric accuracy" in message and "a-b_bleu, a-b_loss, gnorm" in message
    assert "--metric gnorm --per-pair" in fails(
        good, "--output", picture, "--metric", "gnorm", "--per-pair"
    )
    assert ".png, .pdf, .svg" in fails(good, "--output", tmp_path / "out.gif")
    assert "2 names for 1 logs" in fails(good, "--output", picture, "--label", "x", "y")
    assert f"LOG {good}: listed twice" in fails(good, good, "--output", picture)
    assert "is not a folder" in fails(good, "--output", tmp_path / "none" / "out.png")
    assert not picture.exists()


def png_size(path):
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    return struct.unpack(">II", data[16:24])


def test_picture_and_table_of_two_runs(tmp_path, capsys):
    logs = [
        write(tmp_path / "first.log", simple_lines(True)),
        write(tmp_path / "second.log", json_lines(False)),
    ]
    picture = tmp_path / "out.png"
    words = ["plot", *logs, "--output", picture, "--metric", "loss", "*_bleu", "--tsv"]
    assert command.main([str(word) for word in words]) == 0
    assert capsys.readouterr().out.strip() == str(picture)
    width, height = png_size(picture)
    assert width > height > 300
    with open(tmp_path / "out.tsv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    values = [
        (r["split"], int(r["updates"]), float(r["value"])) for r in rows if r["run"] == "first"
    ]
    assert values == [("train", 10, 5), ("train", 20, 3.5), ("valid", 20, 3), ("valid", 20, 12.5)]
    assert {row["run"] for row in rows} == {"first", "second"}
    # nothing half-written is left
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "first.log",
        "out.png",
        "out.tsv",
        "second.log",
    ]


def test_the_panels_show_the_points_and_a_legend(tmp_path):
    runs = [read_run(write(tmp_path / "a.log", simple_lines(True)), name) for name in ("x", "y")]
    figure = plot.draw(runs, panels.select(runs, ["loss", "ppl", "*_bleu"], ()), "title")
    loss, ppl, bleu = figure.axes
    drawn = {line.get_label(): [tuple(point) for point in line.get_xydata()] for line in loss.lines}
    assert drawn["x train"] == INNER and drawn["y valid"] == VALID
    assert [text.get_text() for text in bleu.get_legend().get_texts()] == ["x valid", "y valid"]
    assert (loss.get_yscale(), ppl.get_yscale()) == ("linear", "log")
    assert loss.get_xlabel() == "updates" and loss.get_ylabel() == "loss"
    # one colour for each run
    assert len({line.get_color() for line in loss.lines}) == 2


@pytest.mark.parametrize("labels", [["x"], [f"run {n}" for n in range(9)], ["long " * 12, "y"]])
def test_legends_cover_no_curve(tmp_path, labels):
    log = write(tmp_path / "a.log", simple_lines(True))
    runs = [read_run(log, label) for label in labels]
    figure = plot.draw(runs, panels.select(runs, ["loss", "ppl", "*_bleu", "lr"], ()))
    figure.savefig(tmp_path / "picture.png")
    for panel in figure.axes:
        legend = panel.get_legend().get_window_extent()
        assert not any(legend.overlaps(other.bbox) for other in figure.axes)
        assert panel.bbox.height > 0.65 * PANEL_INCHES[1] * figure.dpi  # it keeps its size


def test_odd_names_are_shown_as_they_are(tmp_path):
    log = write(tmp_path / "a.log", simple_lines(True))
    runs = [read_run(log, name) for name in ("_x", r"$\q$")]
    figure = plot.draw(runs, panels.select(runs, ["*_bleu"], ()), "$5 or $6")
    legend = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert legend == [" _x valid", r"\$\q\$ valid"]
    figure.savefig(tmp_path / "picture.png")  # a formula with \q is none


@pytest.mark.slow
@pytest.mark.parametrize("log_format", ["simple", "json"])
def test_a_log_written_by_fairseq_train(tmp_path, run, toy_corpus, log_format):
    log = tmp_path / "train.log"
    words = ["fairseq-train", toy_corpus.two, "-s", "xx", "-t", "yy", "--arch", "transformer"]
    for side in ("encoder", "decoder"):
        words += [f"--{side}-layers", 1, f"--{side}-embed-dim", 16, f"--{side}-ffn-embed-dim", 16]
        words += [f"--{side}-attention-heads", 1]
    words += ["--optimizer", "adam", "--lr", 0.01, "--max-tokens", 400, "--max-update", 6]
    words += ["--no-save", "--log-interval", 2, "--validate-interval-updates", 3]
    words += ["--log-format", log_format, "--log-file", log, "--cpu"]
    output = run("python", "-m", "_fairseq_ext_cli", "run", *words)
    for path in (log, write(tmp_path / "stdout.log", output.splitlines())):
        read = read_run(path, "run")
        assert [updates for updates, _ in read.curves["train", "loss"]] == [2, 4, 6]
        assert [updates for updates, _ in read.curves["valid", "loss"]][0] == 3
        assert {"loss", "ppl", "gnorm", "lr"} <= set(read.metrics())


@pytest.mark.parametrize(
    "words, name",
    [(["plot"], "run.png"), (["plot", "--tsv"], "run.tsv"), (["compare"], "run.tsv")]
    + [(["compare"], "run.md")],
)
def test_a_log_is_not_written_over(words, name, tmp_path, capsys):
    log = write(tmp_path / name, simple_lines(True))
    before = log.read_bytes()
    words = [*words, log, "--output", tmp_path / "run.png"]
    assert command.main([str(word) for word in words]) == 2
    assert f"{log} is read as well and would be lost" in capsys.readouterr().err
    assert log.read_bytes() == before


@pytest.mark.parametrize("suffix", figures.SUFFIXES)
def test_a_picture_on_a_full_disk_names_its_file(tmp_path, suffix):
    figure, axes = figures.new_figure(2, 2)
    for axis in axes:  # enough to be written in several parts
        axis.plot([number * number % 7 for number in range(500)])
    path = tmp_path / f"picture{suffix}"
    with largest_file(1_000), pytest.raises(OSError) as caught:
        figures.save(figure, path)
    assert caught.value.filename == str(path) and not os.listdir(tmp_path)
