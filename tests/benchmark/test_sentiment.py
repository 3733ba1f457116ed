"""benchmarks/sentiment.py: the work of an update is that of its matrix products."""

import json

import pages
import pytest

pytestmark = pytest.mark.slow  # other tests cover what is measured


def test_work_is_that_of_the_products(run, tmp_path):
    words = "--sentences 4 --steps 5 --embed-dim 32 --hidden-size 64 --words 300 --repeats 1"
    script = pages.REPOSITORY / "benchmarks" / "sentiment.py"
    run("python", script, *words.split(), "--output", tmp_path / "found")
    results = json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))["results"]
    ours = {name: figures["MFLOP/token"] for name, figures in results.items()}
    # three products each: of the output, of the words' inputs, of the states
    lstm, output = 4 * 64 * (32 + 64), 300 * 64
    assert ours["classifier"] == pytest.approx(6 * lstm / 1e6, rel=0.1)
    assert ours["generator"] == pytest.approx(6 * (lstm + output) / 1e6, rel=0.1)
    assert ours["dual"] == pytest.approx(ours["classifier"] + ours["generator"], abs=0.011)
    assert "| dual |" in (tmp_path / "found.md").read_text(encoding="utf-8")
