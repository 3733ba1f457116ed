"""The script that measures synthetic updates, on tiny models."""

import json

import pytest

from benchmarks import monolingual

pytestmark = pytest.mark.slow  # other tests cover what is measured

TINY = "--layers 1 --embed-dim 8 --ffn-embed-dim 8 --heads 2 --hidden 8 --context 8 --vocab 30"


def test_figures_of_every_system(tmp_path):
    sizes = [*TINY.split(), "--max-tokens", "60", "--length", "5", "--repeats", "2"]
    monolingual.main([*sizes, "--output", str(tmp_path / "found")])
    results = json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))["results"]
    assert len(results) == 6
    for name in ("dual", "multiway", "routed"):
        real, synthetic = (results[f"{name}, {kind}"] for kind in ("pairs", "synthetic"))
        assert real["ratio"] == 1 and real["translation"] == 0
        assert synthetic["ratio"] > 1 and 0 < synthetic["translation"] < 1
        assert len(synthetic["turns"]) == 2
    assert "| dual, synthetic" in (tmp_path / "found.md").read_text(encoding="utf-8")
    rows = (tmp_path / "found.csv").read_text(encoding="utf-8").splitlines()
    assert rows[0] == "system,metric,value" and len(rows) == 1 + 3 * 4
    assert f"dual,ratio,{results['dual, synthetic']['ratio']:.2f}" in rows
