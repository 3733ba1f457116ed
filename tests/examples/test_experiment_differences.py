"""Differences between systems of two experiments, and of sets that are not the same."""

import csv

import pytest
from experiments import UsageError, results
from experiments.definition import read_experiment
from experiments.differences import difference, differences, differences_from, number
from experiments.execution import Run
from experiments.files import write_json
from experiments.metrics import metric_named
from experiments.scores import Score, digest, write_score

from fairseq_ext.tools.evaluate.intervals import interval_of_difference, pooled
from fairseq_ext.tools.evaluate.scores import Scored, resample

REFERENCES = [f"a man of {n} years walks in the park of town {n % 3}" for n in range(12)]
FILE = """
title = "a test"
[data]
raw = []
commands = "true"
[systems.base]
train = "true"
evaluate = "true"
"""
WHERE = {"set": "test", "direction": "de-en"}


def score(seed, better, where=WHERE, references=REFERENCES):
    """The BLEU of translations, of which more are right with `better`."""
    metric = metric_named("bleu")
    lines = [
        line if (n + seed) % (better + 1) else line.replace("walks in", "seen at")
        for n, line in enumerate(references)
    ]
    sums = metric.statistics(lines, references)
    value = metric.score(sums.sum(axis=0))
    return Score(metric.title, value, where, "bleu", sums.tolist(), "", digest(references))


def experiment(folder, name, more=""):
    (folder / f"{name}.toml").write_text(FILE + more, encoding="utf-8")
    return read_experiment(str(folder / f"{name}.toml"))


def scores(better, where=WHERE):
    place = tuple(where.items())
    return {("base", place, "BLEU"): {seed: score(seed, better, where) for seed in (1, 2)}}


def test_systems_of_one_label_are_compared(tmp_path):
    first, second = experiment(tmp_path, "first"), experiment(tmp_path, "second")
    turned = dict(reversed(WHERE.items()))  # fields are compared in any order
    worse, better = scores(1, turned), scores(3)
    (line,) = differences_from(first, worse, second, better)
    assert (line["system"], line["versus"]) == ("base", "base of first")
    assert (line["set"], line["direction"], line["seeds"]) == ("test", "de-en", "1 2")
    values = [score(seed, 3).value - score(seed, 1).value for seed in (1, 2)]
    assert line["values"] == " ".join(map(number, values))
    metric, resamples = metric_named("bleu"), resample(len(REFERENCES))
    both = [
        Scored(metric, [score(seed, share).matrix() for seed in (1, 2)], resamples)
        for share in (1, 3)
    ]
    interval = interval_of_difference(*both, pooled(both))
    assert [float(end) for end in line["interval"].split()] == pytest.approx(interval, rel=1e-4)


def test_a_system_that_others_need_has_its_own_name(tmp_path):
    """Ensembles and their members are renamed alike; they count as one training each."""
    more = '[systems.ensemble]\nneeds = ["base"]\nevaluate = "true"\n'
    first, second = (experiment(tmp_path, name, more) for name in ("first", "second"))
    measured = [
        {**scores(better), ("ensemble", tuple(WHERE.items()), "BLEU"): scores(4)[
            "base", tuple(WHERE.items()), "BLEU"
        ]}
        for better in (1, 3)
    ]  # fmt: skip
    lines = differences_from(first, measured[0], second, measured[1])
    assert [line["versus"] for line in lines] == ["base of first", "ensemble of first"]
    alone = differences_from(first, scores(1), second, scores(3))
    assert lines[0] == alone[0] and lines[1]["value"] == "0"


def test_nothing_to_compare_is_refused(tmp_path):
    first, second = experiment(tmp_path, "first"), experiment(tmp_path, "second")
    elsewhere = scores(1, {"set": "val", "direction": "de-en"})
    with pytest.raises(UsageError, match="--versus first: it has no system"):
        differences_from(first, elsewhere, second, scores(3))


def test_other_references_are_refused(tmp_path):
    """Of as many lines: the paired test would take lines for pairs that are none."""
    others = [line + " ." for line in REFERENCES]
    first, second = {1: score(1, 1)}, {1: score(1, 3, references=others)}
    with pytest.raises(UsageError, match="BLEU.*'test'.*different references"):
        difference(first, second)
    unknown = Score(**{**vars(first[1]), "references": ""})  # a score of an earlier version
    assert difference({1: unknown}, second)["values"]
    place = tuple(WHERE.items())
    measured = {("base", place, "BLEU"): first, ("other", place, "BLEU"): second}
    with pytest.raises(UsageError, match="different references"):
        differences({}, [("base", "other")], measured)


def test_the_report_has_them(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(results, "ROOT", tmp_path)
    for name, better in (("first", 1), ("second", 3)):
        folders = tmp_path / "data-bin" / name, tmp_path / "runs" / name
        folders[0].mkdir(parents=True)
        write_json(folders[0] / "prepared.json", {"commands": ["true"], "raw": {}})
        compared = experiment(tmp_path, name)
        run = Run(compared.system("base"), 1, *folders)
        run.train()
        run.evaluate()
        write_score(run.folder / "scores", score(1, better))
    results.report(compared, *folders, [1], peers=[read_experiment(str(tmp_path / "first.toml"))])
    assert "| base - base of first |" in capsys.readouterr().out
    with open(folders[1] / "report.csv", encoding="utf-8", newline="") as stream:
        lines = list(csv.DictReader(stream))
    assert [line["versus"] for line in lines] == ["", "base of first"]
