"""The script that translates beside CTranslate2, on a tiny model; and what it says without it."""

import json
import sys

import pytest

from benchmarks import beside_ctranslate2
from fairseq_ext.tools import UsageError


@pytest.fixture
def words(dual_checkpoint, toy_corpus, tmp_path):
    sizes = ["--gen-subset", "valid", "--sentences", "10", "--repeats", "1", "--longest", "20"]
    output = ["--output", str(tmp_path / "found")]
    return [str(dual_checkpoint), str(toy_corpus.two), "-s", "xx", "-t", "yy", *sizes, *output]


@pytest.mark.slow
def test_all_three_translate_alike(words, tmp_path):
    pytest.importorskip("ctranslate2", reason="CTranslate2 is not installed (optional)")
    beside_ctranslate2.main(words)
    results = json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))["results"]
    assert list(results) == ["stock fairseq", "this suite", "CTranslate2"]
    assert results["this suite"]["same, %"] == 100
    assert results["CTranslate2"]["same, %"] > 90
    assert "| CTranslate2 |" in (tmp_path / "found.md").read_text(encoding="utf-8")


def test_without_ctranslate2(words, monkeypatch):
    module = beside_ctranslate2
    monkeypatch.setattr(module, "exported", lambda args, folder, to: args.checkpoint)
    monkeypatch.setattr(module, "Translator", lambda *_: type("Stock", (), {"sources": list})())
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    with pytest.raises(UsageError, match="pip install ctranslate2"):
        module.main(words)
