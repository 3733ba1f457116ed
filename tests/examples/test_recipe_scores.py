"""Logs, scores, significance and the report."""

import dataclasses
import json
import os
import time

import pytest
from dual_recipe import RecipeError
from dual_recipe.scores import METRICS, compare, score, seconds_per_epoch, translations
from dual_recipe.settings import read_settings

SENTENCES = [
    "A man in an orange hat looks at something .",
    "Two dogs run through the tall grass .",
    "A girl in a karate uniform breaks a stick with a kick .",
    "People are fixing the roof of a house .",
    "A group of people stands in front of an igloo .",
] * 8


def write(path, lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path


def epoch_end(epoch, seconds):
    return f"2026 | INFO | train | epoch {epoch:03d} | loss 2 | train_wall {seconds} | wall 9"


def test_seconds_are_the_median_of_whole_epochs(tmp_path):
    inner = "2026 | INFO | train_inner | epoch 001: 42 / 279 loss=5.8, train_wall=33, wall=226"
    lines = [inner, epoch_end(1, 90), epoch_end(2, 100), epoch_end(3, 120)]
    log = write(tmp_path / "log", lines)
    assert seconds_per_epoch(log) == (100, 3)
    # stopped within epoch 4 and resumed: its time is that of its rest
    more = ["2026 | INFO | Loaded checkpoint last.pt (epoch 4 @ 9 updates)", epoch_end(4, 5)]
    assert seconds_per_epoch(write(log, lines + more)) == (100, 4)
    with pytest.raises(RecipeError, match="log: no epoch of training ended in it"):
        seconds_per_epoch(write(log, [inner]))


def test_translations_in_order_and_complete(tmp_path):
    lines = ["S-1\tb", "D-1\t-0.5\ttwo", "D-1\t-0.9\tworse two", "D-0\t-0.1\t", "noise"]
    log = write(tmp_path / "log", lines)
    assert translations(log, 2) == ["", "two"]
    with pytest.raises(RecipeError, match="log: 2 translations of 4 sentences; without one: 3, 4"):
        translations(log, 4)


def test_scores_are_those_of_sacrebleu(tmp_path):
    import sacrebleu

    hypotheses = [line.replace("people", "folk").replace("A ", "a ") for line in SENTENCES]
    references = write(tmp_path / "references", SENTENCES)
    values, signatures = score(write(tmp_path / "hypotheses", hypotheses), references)
    assert values["bleu"] == sacrebleu.corpus_bleu(hypotheses, [SENTENCES]).score
    assert values["chrf"] == sacrebleu.corpus_chrf(hypotheses, [SENTENCES]).score
    lower = sacrebleu.corpus_bleu(hypotheses, [SENTENCES], lowercase=True).score
    assert values["bleu_lower"] == lower > values["bleu"]
    assert "case:mixed" in signatures["bleu"] and "case:lc" in signatures["bleu_lower"]
    assert signatures["chrf"].startswith("nrefs:1|case:mixed|eff:yes|nc:6")
    with pytest.raises(RecipeError, match="hypotheses has 1 lines and .*references 40"):
        score(write(tmp_path / "hypotheses", ["one"]), references)


def test_paired_bootstrap_sees_a_difference_and_no_difference(tmp_path):
    references = write(tmp_path / "references", SENTENCES)
    bad = [line.replace("a", "the", 1) for line in SENTENCES]
    worse = write(tmp_path / "worse", bad)
    found, signatures = compare(worse, references, references)
    assert found["bleu"]["difference"] > 1 and found["chrf"]["difference"] > 0
    assert found["bleu"]["p"] < 0.01 and found["chrf"]["p"] < 0.01
    assert "bs:1000" in signatures["BLEU"]
    same, _ = compare(worse, worse, references)
    assert same["bleu"] == {"difference": 0, "p": 1}
    reverse, _ = compare(references, worse, references)
    assert reverse["bleu"]["difference"] == -found["bleu"]["difference"]


@pytest.fixture
def runs(tmp_path, small):
    """Data and runs of two seeds in which the dual system is better, the more so for seed 2."""
    settings = read_settings(small)
    for language in settings.languages:
        for split in ("valid", "test"):
            write(tmp_path / "data" / "raw" / f"{split}.{language}", SENTENCES)
    for seed in (1, 2):
        for system in settings.systems:
            scores = {"valid": {}, "test": {}}
            for split in scores:
                for direction in settings.directions_of(system):
                    wrong = 20 if system != "dual" else 8 - seed
                    lines = ["nothing at all"] * wrong + SENTENCES[wrong:]
                    path = tmp_path / "runs" / f"{system}.{seed}" / f"{split}.{direction}.hyp"
                    write(path, lines)
                    references = tmp_path / "data" / "raw" / f"{split}.{direction[-2:]}"
                    scores[split][direction], signatures = score(path, references)
            result = {
                "scores": scores,
                "signatures": signatures,
                "settings": dataclasses.asdict(settings),
                "parameters": {"unique": 110 if system == "dual" else 100, "used": 90},
                "seconds_per_epoch": 10.0 + seed,
                "epochs": 2,
            }
            path = tmp_path / "runs" / f"{system}.{seed}" / "scores.json"
            path.write_text(json.dumps(result), encoding="utf-8")
    return tmp_path


def test_report(script, small, runs, capsys):
    page = write(
        runs / "results.md", ["# R", "<!-- begin small -->", "old", "<!-- end small -->", "z"]
    )
    words = [runs / "data", runs / "runs", 2, 1, "--recipe", small, "--into", page]
    script("report").main([str(word) for word in words])
    data = json.loads((runs / "runs" / "report.json").read_text(encoding="utf-8"))
    assert data["seeds"] == [1, 2] and len(data["tests"]) == 8
    for direction in ("de-en", "en-de"):
        values = data["scores"]["test"][direction]
        assert values["dual"]["bleu"]["min"] < values["dual"]["bleu"]["mean"]
        assert values["stock"]["bleu"]["min"] == values["stock"]["bleu"]["max"]
        for metric in METRICS:
            assert values["dual"][metric]["mean"] > values["stock"][metric]["mean"]
    assert all(test["bleu"]["p"] < 0.05 for test in data["tests"])
    assert data["costs"]["stock"] == {"unique": 200, "used": 180, "seconds_per_epoch": 23.0}
    text = (runs / "runs" / "report.md").read_text(encoding="utf-8")
    assert "Higher BLEU with p < 0.05: 8 of 8." in text
    assert "50% of the parameters" in text
    assert "| both stock models | 200 | 180 | 23 |" in text
    assert "| test_a de-en, seed 2 | +" in text and "| val |" in text
    assert page.read_text(encoding="utf-8").startswith("# R\n<!-- begin small -->\n\nRecipe")
    assert page.read_text(encoding="utf-8").endswith("\n<!-- end small -->\nz\n")
    assert "old" not in page.read_text(encoding="utf-8")
    assert text.strip() in capsys.readouterr().out


def test_report_says_what_is_missing(script, small, runs):
    report = script("report")
    words = [str(runs / "data"), str(runs / "runs"), "3", "--recipe", str(small)]
    with pytest.raises(RecipeError, match=r"dual\.3.scores\.json does not exist; run evaluate\.py"):
        report.main(words)
    text = small.read_text(encoding="utf-8")
    small.write_text(text.replace("--beam 2", "--beam 3"), encoding="utf-8")
    with pytest.raises(RecipeError, match="scores.json was made with other settings"):
        report.main([*words[:2], "1", *words[3:]])
    page = write(runs / "results.md", ["<!-- end small -->", "<!-- begin small -->"])
    with pytest.raises(RecipeError, match="results.md must hold these lines, once each"):
        report.insert("text", page, "small")
    with pytest.raises(RecipeError, match="nothing.md is not a file"):
        report.insert("text", runs / "nothing.md", "small")


def test_evaluate_makes_again_what_is_outdated(script, tmp_path):
    evaluate = script("evaluate")
    source, output = write(tmp_path / "source", ["x"]), tmp_path / "output"
    calls = []

    def make(*words):
        return evaluate.make(output, ["python3", "-c", "print(1)", *words], [source], finish)

    def finish(log):
        calls.append(log.read_text(encoding="utf-8"))
        output.write_text("made", encoding="utf-8")
        os.utime(output, (time.time() + 5, time.time() + 5))

    assert make() is not None and make() is None
    # another command, then an input that is newer than the output
    assert make("other") is not None and make("other") is None
    os.utime(source, (time.time() + 60, time.time() + 60))
    assert make("other") is not None
    assert calls == ["1\n"] * 3


def test_evaluate_needs_a_trained_run(script, small, tmp_path):
    words = [str(tmp_path), str(tmp_path / "runs"), "dual", "1", "--recipe", str(small)]
    with pytest.raises(RecipeError, match=r"checkpoint_last\.pt does not exist; run train\.py"):
        script("evaluate").main(words)
