"""Scores of runs as data: values of all seeds, differences with their significance."""

import csv
import dataclasses
import json
import math
import shutil

import pytest
from experiments import UsageError, surroundings
from experiments.definition import read_experiment
from experiments.differences import difference, number, spread_of_seeds
from experiments.execution import Run
from experiments.files import write_json
from experiments.metrics import metric_named
from experiments.results import collect, lines_of, markdown, report
from experiments.scores import Score, fields, read_scores, write_score

from fairseq_ext.tools.evaluate.intervals import interval_of_difference, pooled
from fairseq_ext.tools.evaluate.scores import Scored, paired_test, resample

FILE = """
title = "a test"
compare = [["base", "other"]]
[data]
raw = []
commands = "true"
[systems.base]
train = "true"
evaluate = "true"
[systems.other]
train = "true"
evaluate = "true"
fields = { layers = "3" }
[systems.absent]
evaluate = "true"
"""
REFERENCES = [f"the man number {n} is walking in the park of town {n % 3}" for n in range(12)]


def translations(seed):
    """Translations that get worse with the seed."""
    return [
        line if (n * 7 + seed) % (seed + 2) else line.replace("walking in the", "seen at a")
        for n, line in enumerate(REFERENCES)
    ]


@pytest.fixture
def runs(tmp_path):
    """(experiment, data, runs) with scores of two systems and two seeds."""
    (tmp_path / "test.toml").write_text(FILE, encoding="utf-8")
    experiment = read_experiment(str(tmp_path / "test.toml"))
    data = tmp_path / "data"
    data.mkdir()
    write_json(data / "prepared.json", {"commands": ["true"], "raw": {}})
    metric = metric_named("bleu")
    for name, shift in (("base", 0), ("other", 3)):
        for seed in (1, 2):
            run = Run(experiment.system(name), seed, data, tmp_path / "runs")
            run.train()
            run.evaluate()
            sums = metric.statistics(translations(seed + shift), REFERENCES)
            value = metric.score(sums.sum(axis=0))
            where = {"set": "test", "direction": "de-en"}
            signature = metric.signature()
            write_score(
                run.folder / "scores",
                Score(metric.title, value, where, "bleu", sums.tolist(), signature),
            )
            write_score(run.folder / "scores", Score("parameters", 1234567.0 + seed, {}))
            wrong = [[float(n < seed * (8 if shift else 1)), 1.0] for n in range(20)]
            rate = Score("error rate", 5 * sum(row[0] for row in wrong), {}, "error", wrong)
            write_score(run.folder / "scores", rate)
    return experiment, data, tmp_path / "runs"


def test_every_value_is_in_the_data(runs):
    results, missing = collect(*runs, [1, 2])
    assert missing == ["absent.1", "absent.2"]
    (base,) = (
        line for line in lines_of(runs[0], results)
        if line["system"] == "base" and line["metric"] == "BLEU"
    )  # fmt: skip
    values = [float(value) for value in base["values"].split()]
    assert base["seeds"] == "1 2" and (base["set"], base["direction"]) == ("test", "de-en")
    assert float(base["value"]) == pytest.approx(sum(values) / 2, rel=1e-4)
    assert [base["low"], base["high"]] == [f"{min(values):.6g}", f"{max(values):.6g}"]
    assert base["p"] == "" and base["versus"] == ""


def test_counts_are_in_full(runs):
    (line,) = (
        line for line in lines_of(runs[0], collect(*runs, [2])[0])
        if (line["system"], line["metric"], line["versus"]) == ("base", "parameters", "")
    )  # fmt: skip
    assert (line["value"], line["values"]) == ("1234569", "1234569")


def test_counts_of_the_report_are_whole(runs, capsys):
    report(*runs, [2])
    printed = capsys.readouterr().out
    assert "| base | 1234569 |" in printed and "| other - base | 0 |" in printed
    assert printed.endswith("not begun: 1 of the 3 runs that this experiment has with this seed\n")


def test_differences_have_the_p_value_of_evaluate(runs):
    results, _ = collect(*runs, [1, 2])
    (line,) = (
        line for line in lines_of(runs[0], results) if line["versus"] and line["metric"] == "BLEU"
    )
    metric, resamples = metric_named("bleu"), resample(len(REFERENCES))
    both = [
        Scored(metric, [metric.statistics(translations(s + shift), REFERENCES) for s in (1, 2)],
               resamples)
        for shift in (0, 3)
    ]  # fmt: skip
    test = paired_test(metric, *both)[0]
    assert (line["system"], line["versus"]) == ("other", "base")
    assert float(line["value"]) == pytest.approx(test["difference"], rel=1e-4)
    assert line["p"] == f"{test['p']:.4f}"
    interval = interval_of_difference(*both, pooled(both))
    assert [float(end) for end in line["interval"].split()] == pytest.approx(interval, rel=1e-4)


def test_seeds_of_one_training_count_once(runs):
    """Two searches with one training vary together: the variance is of the training alone."""
    experiment, *_ = runs
    other = dataclasses.replace(experiment.systems["other"], train=(), needs=("base",))
    systems = {**experiment.systems, "other": other}
    results, _ = collect(*runs, [1, 2])
    (where,) = (where for where in spread_of_seeds(systems, results) if where[1] == "BLEU")
    assert spread_of_seeds(systems, results)[where].freedom == 1
    assert spread_of_seeds(experiment.systems, results)[where].freedom == 2


def test_differences_are_over_the_seeds_that_both_have(runs):
    scores = {seed: Score("BLEU", 10.0 * seed, {}, "bleu", [[1.0] * 10]) for seed in (1, 2, 3)}
    both = {2: scores[2], 3: scores[3]}, {1: scores[1], 3: scores[1]}
    assert difference(*both)["values"] == {3: -20.0}
    # in a report: the baseline lacks the run of seed 2
    shutil.rmtree(runs[2] / "base.2")
    results, _ = collect(*runs, [1, 2])
    seeds = {
        (line["metric"], line["versus"]): line["seeds"]
        for line in lines_of(runs[0], results) if line["system"] == "other"
    }  # fmt: skip
    assert seeds["BLEU", ""] == "1 2" and seeds["BLEU", "base"] == "1"


@pytest.mark.parametrize("by_seed, value, cells", [
    ([math.nan, 900.0], "nan", "nan"),
    ([900.0, math.nan], "nan", "nan"),
    ([math.inf, math.inf], "inf", "inf"),
    ([math.inf, math.exp(2)], "inf", "inf (7.38906 to inf)"),
    ([math.exp(600), math.exp(600)], "3.77302e+260", "3.77302e+260"),
])  # fmt: skip
def test_runs_that_diverged_are_reported(runs, by_seed, value, cells, capsys):
    """Without a test of their differences: p would be the lowest that there is."""
    for name, values in (("base", [math.exp(2), -math.inf]), ("other", by_seed)):
        for seed, perplexity in zip((1, 2), values):
            sums = [[math.log(abs(perplexity)), 1.0]] * 3
            score = Score("perplexity", perplexity, {}, "perplexity", sums)
            write_score(runs[2] / f"{name}.{seed}" / "scores", score)
    report(*runs, [1, 2])
    with open(runs[2] / "report.csv", encoding="utf-8", newline="") as stream:
        lines = [line for line in csv.DictReader(stream) if line["metric"] == "perplexity"]
    system, tested = (line for line in lines if line["system"] == "other")
    assert system["value"] == value and (tested["p"], tested["interval"]) == ("", "")
    assert f"| {cells} |" in capsys.readouterr().out


def test_what_only_resamples_make_infinite_is_not_tested():
    def score(*nats):
        sums = [[value, 1.0] for value in nats]
        return Score("perplexity", math.exp(sum(nats) / len(nats)), {}, "perplexity", sums)

    test = difference({1: score(1.0, 2.0, 3.0)}, {1: score(900.0, 2.0, 3.0)})
    assert (test["p"], test["interval"]) == ([], ())


def test_a_single_item_is_not_tested():
    """All resamples are alike: p would be the lowest, and the interval would have no width."""
    metric = metric_named("cer")

    def score(hypothesis, items):
        sums = metric.statistics([hypothesis] * items, ["four"] * items)
        return Score("CER", metric.score(sums.sum(axis=0)), {}, "cer", sums.tolist())

    for items, p in ((1, 0), (2, 1)):
        test = difference({1: score("for", items)}, {1: score("four", items)})
        assert (test["values"], len(test["p"])) == ({1: -25.0}, p)
        assert len(test["interval"]) == 2 * p


def test_differences_of_classifications_are_tested_seed_by_seed(runs):
    results, _ = collect(*runs, [1, 2])
    (line,) = (
        line for line in lines_of(runs[0], results)
        if line["versus"] and line["metric"] == "error rate"
    )  # fmt: skip
    # 7 and 14 lines on which only the baseline is right
    assert line["p"] == f"{2 / 2**7:.4f} {2 / 2**14:.4f}" and line["values"] == "35 70"


def test_a_system_has_its_fields_in_every_line(runs):
    lines = lines_of(runs[0], collect(*runs, [1, 2])[0])
    assert {line.get("layers") for line in lines if line["system"] == "base"} == {None}
    assert {line["layers"] for line in lines if line["system"] == "other"} == {"3"}


def test_what_has_no_sums_has_a_difference_without_p(runs):
    results, _ = collect(*runs, [1, 2])
    (line,) = (
        line for line in lines_of(runs[0], results)
        if line["versus"] and line["metric"] == "parameters"
    )  # fmt: skip
    assert (float(line["value"]), line["p"], line["values"]) == (0.0, "", "0 0")


def test_the_report_is_stored_as_data_of_the_manual(runs, tmp_path, capsys):
    docs = tmp_path / "docs"
    docs.mkdir()
    earlier = {"old": {"a": "b"}, "test": {"data": "x", "decoding": "greedy", "not run": "all"}}
    (docs / "experiments.json").write_text(json.dumps(earlier), encoding="utf-8")
    report(*runs, [1, 2], docs=docs)
    printed = capsys.readouterr().out
    assert "\nnot begun: 2 of the 6 runs that this experiment has with these seeds\n" in printed
    assert "see whether it still holds: decoding: greedy\n" in printed
    with open(docs / "test.csv", encoding="utf-8", newline="") as stream:
        lines = list(csv.DictReader(stream))
    assert {line["system"] for line in lines} == {"base", "other"}
    facts = json.loads((docs / "experiments.json").read_text(encoding="utf-8"))
    assert facts["old"] == {"a": "b"} and facts["test"]["data"] == "a test"
    assert facts["test"]["decoding"] == "greedy" and facts["test"].get("not run") != "all"
    assert "version:" in facts["test"]["BLEU"] and "torch" in facts["test"]["versions"]
    text = (runs[2] / "report.md").read_text(encoding="utf-8")
    assert "| other - base |" in text and "BLEU, differences:" in text


def test_what_is_said_of_the_tests_is_true_of_the_values(runs):
    experiment, _, folder = runs
    experiment = dataclasses.replace(experiment, compare=[["base", "other"], ["base", "absent"]])
    report(experiment, *runs[1:], [1, 2])
    facts = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    bootstrap, mcnemar = facts["p-values"].split("; ")
    assert bootstrap.startswith("paired bootstrap of systems with the same seed, 1,000 resamples")
    assert mcnemar == "the exact two-sided McNemar test for classifications"
    assert "over sentences and seeds; the variance between seeds is pooled" in facts["intervals"]
    assert facts["not run"] == "absent.1, absent.2"
    report(*runs, [1], ["error rate"])  # nobody asks for the system that is absent
    facts = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    assert facts["p-values"].endswith("bootstrap, 1,000 resamples, one-sided as in sacrebleu")
    assert facts["intervals"].endswith("over sentences") and "not run" not in facts
    report(*runs, [1], ["error rate", "BLEU"])
    facts = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    assert "p-values" not in facts and "intervals" not in facts


def test_a_package_without_metadata_is_left_out(monkeypatch):
    monkeypatch.setattr(surroundings, "PACKAGES", ("fairseq-ext-none", "torch"))
    assert surroundings.surroundings()["versions"].startswith("torch ")


def test_where_runs_were_trained_is_reported(runs):
    """Not where the report is made; what was trained before it was noted counts as of here."""
    folder = runs[2]
    for place, name in enumerate(["base.1", "base.2", "other.1", "other.2"]):
        record = json.loads((folder / name / "commands.json").read_text(encoding="utf-8"))
        (noted,) = record["trained on"]
        assert noted["date"] and "torch " in noted["versions"]
        noted.update(machine=f"machine {place // 2}", versions="torch 1.13.0")
        write_json(folder / name / "commands.json", record)
    report(*runs, [1, 2])
    facts = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    assert facts["machine"] == "machine 0; machine 1" and facts["versions"] == "torch 1.13.0"


def test_stored_values_of_other_runs_are_replaced_only_by_force(runs, tmp_path):
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "experiments.json").write_text("{}", encoding="utf-8")
    report(*runs, [1, 2], docs=docs)
    stored = (docs / "test.csv").read_bytes()
    with pytest.raises(UsageError, match=r"test\.csv has values of base\.2, other\.2, this report"):
        report(*runs, [1], docs=docs)
    assert (docs / "test.csv").read_bytes() == stored
    report(*runs, [1, 2], docs=docs)
    report(*runs, [1], docs=docs, force=True)
    assert (docs / "test.csv").read_bytes() != stored


def test_fields_are_compared_in_any_order(runs):
    experiment, data, folder = runs
    for name, where in (("base", {"set": "val", "direction": "de-en"}),
                        ("other", {"direction": "de-en", "set": "val"})):  # fmt: skip
        write_score(folder / f"{name}.1" / "scores", Score("chrF", 40.0, where))
    lines = lines_of(experiment, collect(experiment, data, folder, [1])[0])
    (line,) = (line for line in lines if line["versus"] and line["metric"] == "chrF")
    assert line["value"] == "0"


def test_signatures_are_of_all_runs_and_of_what_is_reported(runs, capsys):
    experiment, data, folder = runs
    file = folder / "other.2" / "scores" / "test.de-en.BLEU.json"
    file.write_text(file.read_text(encoding="utf-8").replace("version:", "version:1"), "utf-8")
    report(*runs, [1, 2])
    facts = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    assert facts["BLEU"].count("version:") == 2 and facts["BLEU"].count("version:1") == 1
    report(*runs, [1, 2], ["BLEU"])
    assert "BLEU" not in json.loads((folder / "report.json").read_text(encoding="utf-8"))


def test_a_metric_is_left_out(runs, capsys):
    report(*runs, [1, 2], ["BLEU"])
    assert "BLEU" not in capsys.readouterr().out.split("not begun")[0]
    with pytest.raises(UsageError, match="--leave-out BLUE: measured were .*BLEU"):
        report(*runs, [1, 2], ["BLUE"])


def test_counts_are_stored_whole_and_a_small_difference_has_no_sign_of_its_own():
    numbers = [number(value) for value in (3239856.0, -0.0, 29.456789123, -1e-9)]
    assert numbers == ["3239856", "0", "29.4568", "-1e-09"]


def test_values_of_a_paper_stand_beside(runs):
    experiment, data, folder = runs
    text = FILE.replace("[data]", 'published = [["base", "BLEU in the paper", 27.31]]\n[data]')
    experiment.path.write_text(text, encoding="utf-8")
    experiment = read_experiment(str(experiment.path))
    lines = lines_of(experiment, collect(experiment, data, folder, [1])[0])
    (line,) = (line for line in lines if line["metric"] == "BLEU in the paper")
    assert (line["system"], line["value"], line["seeds"]) == ("base", "27.31", "")
    assert "| base | 27.31 |" in markdown(experiment, lines)


def test_runs_of_other_commands_are_refused(runs):
    experiment, data, folder = runs
    text = FILE.replace('train = "true"', 'train = "echo"', 1)
    experiment.path.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match="was started with other options"):
        collect(read_experiment(str(experiment.path)), data, folder, [1])


def test_nothing_to_report(runs):
    with pytest.raises(UsageError, match="has no evaluated run"):
        collect(*runs, [7])


def test_two_systems_of_one_label_must_differ_in_what_they_score(runs):
    experiment, data, folder = runs
    text = FILE.replace("[systems.other]", '[systems.other]\nlabel = "base"')
    text = text.replace('fields = { layers = "3" }', "")
    experiment.path.write_text(
        text.replace('["base", "other"]', '["base", "base"]'), encoding="utf-8"
    )
    with pytest.raises(UsageError, match="two systems with the label 'base'"):
        collect(read_experiment(str(experiment.path)), data, folder, [1])


def test_scores_come_back_as_they_were_written(tmp_path):
    score = Score("right, %", 1.5, {"set": "val"}, "right", [[1.0, 1.0]], "s")
    write_score(tmp_path / "scores", score)
    assert read_scores(tmp_path) == [score]
    assert fields(["a=b", "c=d=e"]) == {"a": "b", "c": "d=e"}
    with pytest.raises(UsageError, match="--where x: allowed: FIELD=VALUE"):
        fields(["x"])
    with pytest.raises(UsageError, match=r"--where system=\.\.\.: a column of the results"):
        fields(["set=val", "system=dual"])


@pytest.mark.parametrize("text", ['{"metric": "BL', '{"metric": "BLEU", "values": 1}', "[]"])
def test_a_damaged_score_is_named(tmp_path, text):
    write_score(tmp_path / "scores", Score("BLEU", 20.0, {}))
    (tmp_path / "scores" / "BLEU.json").write_text(text, encoding="utf-8")
    for function in (read_scores, lambda _: write_score(tmp_path / "scores", Score("BLEU", 2, {}))):
        with pytest.raises(UsageError, match=r"scores/BLEU\.json is damaged: .*score\.py"):
            function(tmp_path)


def test_a_score_does_not_replace_another_one(tmp_path):
    write_score(tmp_path, Score("BLEU", 20.0, {"set": "test.a"}))
    write_score(tmp_path, Score("BLEU", 21.0, {"set": "test.a"}))
    with pytest.raises(UsageError, match=r"BLEU\.json is of BLEU .*test\.a"):
        write_score(tmp_path, Score("BLEU", 22.0, {"set": "test a"}))
