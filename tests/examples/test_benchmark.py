"""The benchmark runs, and reports what it says it does; how fast is not tested."""

import json
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]


def test_benchmark_reports_every_system(run, tmp_path):
    words = "--updates 1 --repeats 1 --max-tokens 300 --vocab 50 --train-sentences 60 --length 6 "
    words += "--layers 1 --embed-dim 16 --ffn-embed-dim 16 --heads 2 --beam 2 --sentences 64"
    script = REPOSITORY / "examples" / "benchmark" / "run.py"
    run("python", script, *words.split(), "--output", tmp_path / "speed")
    record = json.loads((tmp_path / "speed.json").read_text(encoding="utf-8"))
    results = record["results"]
    assert list(results) == ["two stock", "two stock, our criterion", "dual"]
    assert results["two stock"]["training ratio"] == results["two stock"]["generation ratio"] == 1
    assert all(found["target tokens/s"] > 0 for found in results.values())
    assert results["dual"]["sentences/s"] > 0
    assert results["dual"]["parameters"] < results["two stock"]["parameters"]
    table = (tmp_path / "speed.md").read_text(encoding="utf-8")
    assert all(f"| {name} |" in table for name in results)
