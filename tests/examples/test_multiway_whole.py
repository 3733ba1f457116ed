"""The recipe of examples/multiway on a tiny corpus: train, evaluate, report, draw."""

import json
import math
import re

import pytest


@pytest.fixture
def step(run, examples_folder, small_multiway, tmp_path):
    """Function (script, words) -> what examples/multiway/SCRIPT.py prints."""

    def run_step(name, *words):
        script = examples_folder / "multiway" / f"{name}.py"
        return run("python", script, *words, "--recipe", small_multiway, cwd=tmp_path)

    return run_step


def result_of(runs, system):
    return json.loads((runs / f"{system}.1" / "scores.json").read_text(encoding="utf-8"))


def validated_likelihoods(log):
    """Natural log-probability per sentence: -loss (bits) ln 2 * tokens / sentences."""
    pattern = r"'valid' subset \| loss ([\d.]+) .* wpb ([\d.]+) \| bsz ([\d.]+) "
    return [
        -float(loss) * math.log(2) * float(tokens) / float(sentences)
        for loss, tokens, sentences in re.findall(pattern, log.read_text(encoding="utf-8"))
    ]


@pytest.mark.slow
def test_low_resource(step, prepared_multiway, tmp_path):
    data, runs = prepared_multiway, tmp_path / "runs"
    for system, count in (("single.50.de-en", 2), ("multi.50.de-en", 4)):
        assert f"trained: {runs / system}.1" in step("train", data, runs, system, 1)
        text = step("evaluate", data, runs, system, 1)
        assert text.count("12 sentences in ") == count
        assert "12 sentences in" not in step("evaluate", data, runs, system, 1)
    single, multi = (result_of(runs, f"{kind}.50.de-en") for kind in ("single", "multi"))
    assert (single["updates"], multi["updates"]) == (6, 36)
    assert list(multi["scores"]["test"]) == ["de-en", "en-de"]
    # the same number two ways: fairseq-generate --score-reference and the validation while training
    expected = validated_likelihoods(runs / "single.50.de-en.1.log")
    found = single["scores"]["valid"]["de-en"]["likelihood"]
    assert min(abs(found - each) for each in expected) < 0.1
    assert single["parameters"]["used"] < multi["parameters"]["used"]
    assert "not evaluated: single.de-en.1" in step("report", data, runs, 1)
    step("curves", runs, 1, "--by", "data", "--output", tmp_path / "data.png")
    assert (tmp_path / "data.png").is_file()


@pytest.mark.slow
def test_zero_shot(step, prepared_multiway, tmp_path):
    data, runs = prepared_multiway, tmp_path / "runs"
    step("train", data, runs, "zero-shot", 1)
    step("evaluate", data, runs, "zero-shot", 1)
    scores = result_of(runs, "zero-shot")["scores"]["test"]
    assert set(scores) == {"de-fr", "fr-de", "de-en-fr", "fr-en-de"}
    assert math.isfinite(scores["de-fr"]["likelihood"])
    for name in ("test.de-en.hyp", "test.de-en-fr.hyp"):
        lines = (runs / "zero-shot.1" / name).read_text(encoding="utf-8").splitlines()
        assert len(lines) == 12
