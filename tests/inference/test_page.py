"""The Python of docs/python.md runs, in its order, on a small model; what it needs is packed."""

import os

import pages
from inference.test_packing import PackOptions, pack  # noqa: F401

from fairseq_ext.tools.packing.command import subwords_of

PAGE = pages.REPOSITORY / "docs" / "python.md"


def test_the_code_of_the_page_runs(data, checkpoint_of, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run").mkdir()
    os.symlink(checkpoint_of("dual_transformer"), "run/checkpoint_best.pt")
    os.symlink(data["two"], "bin")
    pack(["run/checkpoint_best.pt"], "bin", "model")
    code = [block.text for block in pages.blocks(PAGE) if block.language == "python"]
    assert len(code) >= 6
    namespace = {}
    for text in code:
        exec(compile(text, str(PAGE), "exec"), namespace)
    assert "load(" in capsys.readouterr().out


def test_the_option_subwords():
    assert subwords_of(None) is None and subwords_of("none") == "none"
    assert subwords_of("de=a,en=b") == {"de": "a", "en": "b"}
