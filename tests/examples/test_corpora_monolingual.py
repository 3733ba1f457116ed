"""Text of one language: nothing that is to be scored stays in it."""

import gzip
from argparse import ArgumentParser

import pytest
from corpora import monolingual

from fairseq_ext.tools import UsageError


@pytest.fixture
def kept_lines(tmp_path):
    """Function (text, sets) -> the lines that are written."""

    def run(text, *sets):
        with gzip.open(tmp_path / "mono.de.gz", "wt", encoding="utf-8") as stream:
            stream.write("".join(line + "\n" for line in text))
        names = []
        for number, lines in enumerate(sets):
            path = tmp_path / f"set{number}.de"
            path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
            names.append(str(path))
        parser = ArgumentParser()
        monolingual.add_arguments(parser)
        output = tmp_path / "out" / "mono.de"
        words = ["--text", str(tmp_path / "mono.de"), "--output", str(output), "--without", *names]
        monolingual.run(parser.parse_args(words))
        return output.read_text(encoding="utf-8").splitlines()

    return run


def test_lines_of_a_set_and_empty_ones_are_left_out(kept_lines, capsys):
    text = ["ein Hund", "", "eine Katze", "ein Hund", "  ein Haus ", "noch eins"]
    assert kept_lines(text, ["eine Katze"], ["ein Haus"]) == ["ein Hund", "ein Hund", "noch eins"]
    assert "3 lines, 2 of a set to be scored left out" in capsys.readouterr().out


def test_code_points_and_blanks_are_no_difference(kept_lines):
    text = ["cafe\u0301 noir", "un\u00a0the\u0301", "une  eau"]
    assert kept_lines(text, ["caf\u00e9 noir"], ["un th\u00e9"]) == ["une  eau"]


def test_invisible_characters_are_no_difference(kept_lines):
    """Khmer is written with zero-width blanks between words, or without; Arabic with marks."""
    khmer, arabic = "ដើមឈើ\u200bភ្នែក។", "مرحبا"
    text = [khmer, f"\u200f{arabic}", "\u200b", "\u200b\ufeff ", f"{arabic}\u200f ."]
    scored = [khmer.replace("\u200b", ""), arabic]
    assert kept_lines(text, scored) == [f"{arabic}\u200f ."]


def test_text_that_is_nothing_but_a_set_is_refused(kept_lines):
    with pytest.raises(UsageError, match=r"--text .*mono\.de has no line that is not in --without"):
        kept_lines(["ein Hund", ""], ["ein Hund"])


def test_the_text_itself_is_not_replaced(tmp_path, write):
    text = write(tmp_path / "mono.de", ["a", "b"])
    parser = ArgumentParser()
    monolingual.add_arguments(parser)
    words = ["--text", str(text), "--output", str(text), "--without", str(text)]
    with pytest.raises(UsageError, match=r"mono\.de would be replaced"):
        monolingual.run(parser.parse_args(words))
