"""Logs, scores, significance, and steps that are made once."""

import os
import time

import pytest
from recipe_tools import RecipeError
from recipe_tools.evaluation import make
from recipe_tools.scores import compare, score, seconds_per_epoch, translations


def epoch_end(epoch, seconds):
    return f"2026 | INFO | train | epoch {epoch:03d} | loss 2 | train_wall {seconds} | wall 9"


def test_seconds_are_the_median_of_whole_epochs(tmp_path, write):
    inner = "2026 | INFO | train_inner | epoch 001: 42 / 279 loss=5.8, train_wall=33, wall=226"
    lines = [inner, epoch_end(1, 90), epoch_end(2, 100), epoch_end(3, 120)]
    log = write(tmp_path / "log", lines)
    assert seconds_per_epoch(log) == (100, 3)
    # stopped within epoch 4 and resumed: its time is that of its rest
    more = ["2026 | INFO | Loaded checkpoint last.pt (epoch 4 @ 9 updates)", epoch_end(4, 5)]
    assert seconds_per_epoch(write(log, lines + more)) == (100, 4)
    with pytest.raises(RecipeError, match="log: it has no finished training epoch"):
        seconds_per_epoch(write(log, [inner]))


def test_translations_in_order_and_complete(tmp_path, write):
    lines = ["S-1\tb", "D-1\t-0.5\ttwo", "D-1\t-0.9\tworse two", "D-0\t-0.1\t", "noise"]
    log = write(tmp_path / "log", lines)
    assert translations(log, 2) == ["", "two"]
    with pytest.raises(RecipeError, match="log: 2 translations of 4 sentences; without one: 3, 4"):
        translations(log, 4)


def test_scores_are_those_of_sacrebleu(tmp_path, write, sentences):
    import sacrebleu

    hypotheses = [line.replace("people", "folk").replace("A ", "a ") for line in sentences]
    references = write(tmp_path / "references", sentences)
    values, signatures = score(write(tmp_path / "hypotheses", hypotheses), references)
    assert values["bleu"] == sacrebleu.corpus_bleu(hypotheses, [sentences]).score
    assert values["chrf"] == sacrebleu.corpus_chrf(hypotheses, [sentences]).score
    lower = sacrebleu.corpus_bleu(hypotheses, [sentences], lowercase=True).score
    assert values["bleu_lower"] == lower > values["bleu"]
    assert "case:mixed" in signatures["bleu"] and "case:lc" in signatures["bleu_lower"]
    assert signatures["chrf"].startswith("nrefs:1|case:mixed|eff:yes|nc:6")
    with pytest.raises(RecipeError, match="hypotheses has 1 lines and .*references 40"):
        score(write(tmp_path / "hypotheses", ["one"]), references)


def test_paired_bootstrap_sees_a_difference_and_no_difference(tmp_path, write, sentences):
    references = write(tmp_path / "references", sentences)
    bad = [line.replace("a", "the", 1) for line in sentences]
    worse = write(tmp_path / "worse", bad)
    found, signatures = compare(worse, references, references)
    assert found["bleu"]["difference"] > 1 and found["chrf"]["difference"] > 0
    assert found["bleu"]["p"] < 0.01 and found["chrf"]["p"] < 0.01
    assert "bs:1000" in signatures["BLEU"]
    same, _ = compare(worse, worse, references)
    assert same["bleu"] == {"difference": 0, "p": 1}
    reverse, _ = compare(references, worse, references)
    assert reverse["bleu"]["difference"] == -found["bleu"]["difference"]


def test_a_step_makes_again_what_is_outdated(tmp_path, write):
    source, output = write(tmp_path / "source", ["x"]), tmp_path / "output"
    calls = []

    def step(*words):
        return make(output, ["python3", "-c", "print(1)", *words], [source], finish)

    def finish(log):
        calls.append(log.read_text(encoding="utf-8"))
        output.write_text("made", encoding="utf-8")
        os.utime(output, (time.time() + 5, time.time() + 5))

    assert step() is not None and step() is None
    # another command, then an input that is newer than the output
    assert step("other") is not None and step("other") is None
    os.utime(source, (time.time() + 60, time.time() + 60))
    assert step("other") is not None
    assert calls == ["1\n"] * 3
