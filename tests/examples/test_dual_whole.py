"""The whole recipe on a tiny corpus: prepare, train three systems, evaluate, report."""

import json

import pytest

SYSTEMS = ("dual", "stock.de-en", "stock.en-de")


@pytest.mark.slow
@pytest.mark.parametrize("bpe", ["sentencepiece", "fastbpe"])
def test_recipe(run, recipe_folder, raw, small, tmp_path, bpe):
    if bpe == "fastbpe":
        pytest.importorskip("fastBPE", reason="fastBPE is not installed: it needs a C++ compiler")
    data, runs = tmp_path / "data", tmp_path / "runs"

    def step(name, *words):
        return run("python", recipe_folder / f"{name}.py", *words, "--recipe", small, cwd=tmp_path)

    step("prepare", raw, data, "--bpe", bpe)
    for system in SYSTEMS:
        text = step("train", data, runs, system, 1)
        assert "train epoch 002" in text and f"trained: {runs / system}.1" in text
        text = step("evaluate", data, runs, system, 1)
        # one direction of a stock model, both of the dual one; validation and test
        assert text.count("12 sentences in ") == (4 if system == "dual" else 2)
        assert "12 sentences in" not in step("evaluate", data, runs, system, 1)
        result = json.loads((runs / f"{system}.1" / "scores.json").read_text(encoding="utf-8"))
        assert result["epochs"] == 2
        assert 0 < result["parameters"]["used"] <= result["parameters"]["unique"]
    step("report", data, runs, 1)
    report = json.loads((runs / "report.json").read_text(encoding="utf-8"))
    costs = report["costs"]
    assert costs["dual"]["unique"] == costs["dual"]["used"] < costs["stock"]["used"]
    # the dual model holds one attention and one layer norm more per block than an encoder does,
    # for both languages: no more than the two encoders and two decoders of the stock models
    assert len(report["tests"]) == 4
    assert {test["direction"] for test in report["tests"]} == {"de-en", "en-de"}
