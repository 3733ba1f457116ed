"""The whole recipe on a tiny corpus: prepare, train all systems, evaluate, report."""

import json

import pytest

BASE = ("dual", "stock.de-en", "stock.en-de")
RANKED = ("separate.inference", "dual.inference")
ALL = (*BASE, "lm.de", "lm.en", "dsl", "dual.dsl", *RANKED)


@pytest.mark.slow
@pytest.mark.parametrize("bpe, systems", [("sentencepiece", ALL), ("fastbpe", BASE)])
def test_recipe(run, recipe_folder, raw, small, tmp_path, bpe, systems):
    if bpe == "fastbpe":
        pytest.importorskip("fastBPE", reason="fastBPE is not installed: it needs a C++ compiler")
    data, runs = tmp_path / "my data", tmp_path / "my runs"

    def step(name, *words):
        return run("python", recipe_folder / f"{name}.py", *words, "--recipe", small, cwd=tmp_path)

    step("prepare", raw, data, "--bpe", bpe)
    for system in systems:
        if system not in RANKED:
            text = step("train", data, runs, system, 1)
            assert "train epoch 001" in text and f"trained: {runs / system}.1" in text
        if system.startswith("lm."):
            continue
        text = step("evaluate", data, runs, system, 1)
        # one direction of a stock model, both of the others; validation and test
        assert text.count("12 sentences in ") == (2 if system.startswith("stock") else 4)
        assert "12 sentences in" not in step("evaluate", data, runs, system, 1)
        result = json.loads((runs / f"{system}.1" / "scores.json").read_text(encoding="utf-8"))
        assert result["epochs"] == 2
        assert 0 < result["parameters"]["used"] <= result["parameters"]["unique"]
        assert len(result["alpha"]) == (2 if system in RANKED else 0)
        assert all(0 <= float(alpha) <= 1 for alpha in result["alpha"].values())
    step("report", data, runs, 1)
    report = json.loads((runs / "report.json").read_text(encoding="utf-8"))
    costs = report["costs"]
    assert costs["dual"]["unique"] == costs["dual"]["used"] < costs["stock"]["used"]
    # the dual model holds one attention and one layer norm more per block than an encoder does,
    # for both languages: no more than the two encoders and two decoders of the stock models
    compared = [name for name in systems if name[:5] not in ("stock", "lm.de", "lm.en")]
    ranked = sum(name in RANKED for name in compared)  # tested on the test set alone
    assert len(report["tests"]) == 4 * len(compared) - 2 * ranked
    if "dsl" in systems:  # the two stock models, in one
        assert costs["dsl"]["unique"] == costs["stock"]["unique"]
        assert all((runs / f"{name}.1" / "alpha.de-en.png").is_file() for name in RANKED)
        assert costs["separate.inference"]["unique"] == costs["stock"]["unique"]
    assert {test["direction"] for test in report["tests"]} == {"de-en", "en-de"}
