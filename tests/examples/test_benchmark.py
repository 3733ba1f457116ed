"""The benchmark runs, and reports what it says it does; how fast is not tested."""

import json
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]


SCRIPT = REPOSITORY / "examples" / "benchmark" / "run.py"
SMALL = "--updates 1 --repeats 1 --max-tokens 300 --vocab 50 --train-sentences 60 --length 6 "
SMALL += "--embed-dim 16 --beam 2 --sentences 64 "


def test_benchmark_of_dual_reports_every_system(run, tmp_path):
    words = SMALL + "--layers 1 --ffn-embed-dim 16 --heads 2"
    run("python", SCRIPT, *words.split(), "--output", tmp_path / "speed")
    record = json.loads((tmp_path / "speed.json").read_text(encoding="utf-8"))
    results = record["results"]
    assert list(results) == ["two stock", "two stock, our criterion", "dual"]
    assert results["two stock"]["training ratio"] == results["two stock"]["generation ratio"] == 1
    assert all(found["target tokens/s"] > 0 for found in results.values())
    assert results["dual"]["sentences/s"] > 0
    assert results["dual"]["parameters"] < results["two stock"]["parameters"]
    table = (tmp_path / "speed.md").read_text(encoding="utf-8")
    assert all(f"| {name} |" in table for name in results)


def test_benchmark_of_multiway_counts_the_products(run, tmp_path):
    words = SMALL + "--system multiway --hidden 24 --context 20"
    run("python", SCRIPT, *words.split(), "--output", tmp_path / "speed")
    results = json.loads((tmp_path / "speed.json").read_text(encoding="utf-8"))["results"]
    assert list(results) == ["stock lstm", "multiway"]
    for found in results.values():
        assert found["target tokens/s"] > 0 and found["sentences/s"] > 0
        # forward and backward: at least six operations for each parameter outside the embeddings
        assert found["MFLOP/token"] * 1e6 > 6 * 16 * 50
    assert results["stock lstm"]["ratio at equal FLOP"] == 1


def test_benchmark_of_duo_expects_what_its_products_cost(run, tmp_path):
    """Twice the embeddings and the feed-forward layers, 1.5 times the attention: 1.5 to 2."""
    words = SMALL + "--system duo --layers 2 --ffn-embed-dim 32 --heads 2"
    run("python", SCRIPT, *words.split(), "--output", tmp_path / "speed")
    results = json.loads((tmp_path / "speed.json").read_text(encoding="utf-8"))["results"]
    assert list(results) == ["stock transformer", "duo"]
    stock, duo = results.values()
    assert stock["expected ratio"] == 1 and 1 / 2 < duo["expected ratio"] < 1 / 1.3
    assert duo["sentences/s"] > 0 and duo["parameters"] > stock["parameters"]


def test_benchmark_of_routed(run, tmp_path):
    words = SMALL + "--system routed --hidden 16 --context 12"
    run("python", SCRIPT, *words.split(), "--output", tmp_path / "speed")
    results = json.loads((tmp_path / "speed.json").read_text(encoding="utf-8"))["results"]
    assert list(results) == ["stock lstm", "routed"]
    for found in results.values():
        assert found["MFLOP/token"] * 1e6 > 6 * 16 * 50 and found["sentences/s"] > 0


def test_products_are_counted(monkeypatch):
    import torch

    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    from products import Products

    from fairseq_ext.common import products

    left = torch.randn(3, 5, requires_grad=True)
    right = torch.randn(5, 7, requires_grad=True)
    with Products(1) as found:
        (left @ right).sum().backward()
    assert found.operations() == 3 * 2 * 3 * 5 * 7
    with Products(1) as found:
        torch.nn.functional.linear(torch.randn(2, 3, 5), right.t(), torch.randn(7))
        torch.bmm(torch.randn(4, 2, 3), torch.randn(4, 3, 6))
    assert found.operations() == 2 * (2 * 3 * 5 * 7 + 4 * 2 * 3 * 6)
    with Products(1) as found:
        torch.zeros(4, 2, 6).baddbmm_(torch.randn(4, 2, 3), torch.randn(4, 3, 6))
        torch.mm(torch.randn(2, 3), torch.randn(3, 5), out=torch.empty(2, 5))
        products.repeated_linear(torch.randn(512, 256), 2)(torch.randn(2, 256))
    assert found.operations() == 2 * (4 * 2 * 3 * 6 + 2 * 3 * 5 + 2 * 256 * 512)
    assert found.seconds(1) > 0
    monkeypatch.setattr(products, "WORTH_ONEDNN", 1)
    with Products(1) as found:
        products.linear(left, right.t(), torch.randn(7)).square().sum().backward()
    assert found.operations() == 3 * 2 * 3 * 5 * 7
    assert found.seconds(1) > 0
    lstm, inputs = torch.nn.LSTM(6, 5), torch.randn(7, 2, 6, requires_grad=True)
    with Products(1) as found:
        lstm(inputs)[0].sum().backward()
    assert found.operations() == 3 * 2 * 7 * 2 * 4 * 5 * (6 + 5)


def test_benchmark_of_the_unit(run, tmp_path):
    words = "--sentences 3 --steps 4 --size 8 --repeats 1"
    script = SCRIPT.with_name("unit.py")
    run("python", script, *words.split(), "--output", tmp_path / "unit")
    record = json.loads((tmp_path / "unit.json").read_text(encoding="utf-8"))
    literal, unit, gru = record["results"].values()
    assert unit["GFLOP"] == literal["GFLOP"] == pytest.approx(gru["GFLOP"], rel=0.1)
    assert "| routed unit |" in (tmp_path / "unit.md").read_text(encoding="utf-8")
