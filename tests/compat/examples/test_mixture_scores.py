"""Scores of several translations (fairseq_ext/compat/examples/mixture_scores.py)."""

import runpy
import sys

import pytest

REFERENCES = ("a b c d e f", "g h i j k l")


@pytest.fixture
def score(monkeypatch, capsys):
    """Function: what the script prints, run as `python -m` does."""
    present = set(sys.modules)

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["score", *map(str, words)])
        runpy.run_module("examples.translation_moe.score", run_name="__main__", alter_sys=False)
        return capsys.readouterr().out

    yield run
    for name in set(sys.modules) - present:
        if name.partition(".")[0] == "examples":
            del sys.modules[name]


def write(folder, hypotheses):
    """Write a text with two references, and the translations of each system."""
    lines = ["S-0\tx y", "T-0\ta b c d e f", *(f"R-0\t{text}" for text in REFERENCES)]
    (folder / "references").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    for number, text in enumerate(hypotheses):
        lines = ["S-0\tx y", "T-0\ta b c d e f", f"H-0\t-0.5\t{text}", f"D-0\t-0.5\t{text}"]
        path = folder / f"system{number}"
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return [folder / f"system{number}" for number in range(len(hypotheses))]


@pytest.mark.parametrize(
    ("hypotheses", "covered"),
    [
        (("a b c d e x", "a b c d y f"), "1.00"),  # both are translations as the first
        (("a b c d e x", "g h i j y l"), "2.00"),
    ],
)
def test_covered_references(score, tmp_path, hypotheses, covered):
    systems = write(tmp_path, hypotheses)
    for _ in range(8):  # stock draws one by chance
        out = score("--sys", *systems, "--ref", tmp_path / "references")
        assert f"#refs covered: {covered}" in out


def test_empty_translations(score, tmp_path):
    systems = write(tmp_path, ("a b c d e f", ""))
    out = score("--sys", *systems, "--ref", tmp_path / "references", "--output", tmp_path / "all")
    assert "pairwise BLEU: 0.00" in out
    text = (tmp_path / "all").read_text(encoding="utf-8")
    assert text.startswith("x y\na b c d e f\n\n\t-0.500000\ta b c d e f\n\t-0.500000\t\n")
