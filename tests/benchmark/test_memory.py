"""benchmarks/memory.py: the peak of every system beside its closest peer."""

import functools
import json

import pytest
from benchmark.inline import Inline

from benchmarks import memory

pytestmark = pytest.mark.slow  # other tests cover what is measured


def test_peaks_beside_the_closest_peer(monkeypatch, tmp_path):
    start = functools.partial(memory.measure_family, start=Inline)
    monkeypatch.setattr(memory, "measure_family", start)
    sizes = "--updates 1 --max-tokens 100 --vocab 50 --train-sentences 60 --length 6 --embed-dim 16"
    sizes += " --hidden 24 --context 20 --layers 1 --ffn-embed-dim 16 --heads 2"
    words = [*sizes.split(), "--system", "dual", "twin_lstm", "--output", str(tmp_path / "found")]
    memory.main(words)
    results = json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))["results"]
    peer = "stock lstm (twin_lstm)"
    assert list(results) == ["two stock (dual)", "dual", peer, "twin_lstm"]
    # two models have more parameters than one that does the same
    assert results["two stock (dual)"]["parameters"] > results["dual"]["parameters"] > 0
    assert results[peer]["ratio"] == 1
    assert "| twin_lstm |" in (tmp_path / "found.md").read_text(encoding="utf-8")
