"""The script that measures the Python interface, on a tiny model."""

import json

import pytest

from benchmarks import python_interface

pytestmark = pytest.mark.slow  # other tests cover what is measured


def test_all_programs_translate_the_same(dual_checkpoint, toy_corpus, tmp_path):
    python_interface.main(
        [str(dual_checkpoint), str(toy_corpus.two), "-s", "xx", "-t", "yy"]
        + ["--task", "dual_translation", "--gen-subset", "valid", "--sentences", "8"]
        + ["--repeats", "1", "--longest", "8", "--output", str(tmp_path / "found")]
    )
    results = json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))["results"]
    assert list(results) == ["fairseq-generate", "fairseq-interactive", "load(..).translate"]
    for figures in results.values():
        assert figures["same, %"] == 100 and figures["sentences/s"] > 0
        assert len(figures["turns"]) == 1 and figures["ratio"] == pytest.approx(
            figures["sentences/s"] / results["fairseq-generate"]["sentences/s"]
        )
