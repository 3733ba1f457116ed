"""Aligned raw text is copied line by line, and what is not aligned is named."""

import gzip
from argparse import ArgumentParser

import pytest
from corpora import parallel
from corpora.files import aligned

from fairseq_ext.tools import UsageError


@pytest.fixture
def copy(tmp_path):
    """Function (options) that runs the command on tmp_path/raw."""

    def run(*words):
        parser = ArgumentParser()
        parallel.add_arguments(parser)
        raw = tmp_path / "raw"
        options = ["--languages", "de", "en", "--train", raw / "train", "--valid", raw / "val"]
        options += ["--test", raw / "test_a", "--output", tmp_path / "out", *words]
        parallel.run(parser.parse_args([str(option) for option in options]))
        return tmp_path / "out"

    return run


def test_training_lines_that_are_empty_on_one_side_are_left_out(copy, raw, write, capsys):
    write(raw / "train.de", ["eins", "\u200b", "drei", "vier"])
    write(raw / "train.en", ["one", "two", "", "four"])
    write(raw / "val.de", ["", "x", ""])
    write(raw / "val.en", ["a", "", ""])
    out = copy()
    assert (out / "train.de").read_text(encoding="utf-8") == "eins\nvier\n"
    assert (out / "valid.en").read_text(encoding="utf-8") == "a\n\n\n"
    said = capsys.readouterr().out
    assert "train: 2 lines, 2 with an empty side dropped (line 2 and 1 more)\n" in said
    assert (
        f"warning: {raw}/val.de, line 1 and 2 more: empty, or empty in another language: no "
        "translation of it can be right" in said
    )
    assert "test_a" not in said


def test_the_first_lines_are_those_of_the_file(copy, raw, write):
    write(raw / "train.de", ["", "b", "c"])
    write(raw / "train.en", ["1", "2", "3"])
    assert (copy("--train-lines", 2) / "train.en").read_text(encoding="utf-8") == "2\n"


def test_training_pairs_that_are_scored_have_a_warning(copy, raw, write, capsys):
    write(raw / "train.de", ["eins", "zwei", "zwei", "drei", ""])
    write(raw / "train.en", ["one", "two", "two", "three", ""])
    write(raw / "test_a.de", ["vier", "zwei", "drei", "eins", ""])
    write(raw / "test_a.en", ["four", "two", "three", "another", ""])
    copy()
    said = f"warning: {raw}/train.de, line 2: the pair is in {raw}/test_a.de too (2 such pairs in "
    assert said in capsys.readouterr().out
    write(raw / "train.de", ["eins", "zw\u00adei\u200b", "zwei", "drei", "\u200b"])
    copy()
    assert said in capsys.readouterr().out  # invisible characters are no difference
    write(raw / "val.de", ["zwei"])
    write(raw / "val.en", ["two"])
    copy()
    both = capsys.readouterr().out  # a pair of both sets is named with each
    assert said in both and f"{raw}/val.de too (1 such pairs in all)" in both
    copy("--train-lines", 1)
    assert " too (" not in capsys.readouterr().out


def test_packed_files_are_read(copy, raw):
    for path in list(raw.glob("train.*")):
        with gzip.open(f"{path}.gz", "wb") as stream:
            stream.write(path.read_bytes())
        path.unlink()
    assert len((copy() / "train.de").read_text(encoding="utf-8").splitlines()) == 120


def test_sides_of_different_length(copy, raw, write):
    write(raw / "train.de", ["1", "2", "3"])
    write(raw / "train.en", ["1"])
    with pytest.raises(UsageError, match=r"train\.de has 3 lines and .*train\.en 1"):
        copy()


def test_of_several_files_the_shortest_is_named(write, tmp_path):
    sizes = {"a": 3, "b": 3, "c": 2}
    a, b, c = (write(tmp_path / name, ["x"] * size) for name, size in sizes.items())
    assert list(aligned(a, b)) == [("x", "x")] * 3
    for paths in ((a, b, c), (c, a, b)):
        with pytest.raises(UsageError, match=r"a has 3 lines and \S*c 2: line N of one must be"):
            list(aligned(*paths))


def test_text_that_is_not_utf_8(copy, raw):
    (raw / "train.de").write_bytes(b"gut\n\xff\n")
    with pytest.raises(UsageError, match=r"train\.de, line 2: not UTF-8"):
        copy()


def test_missing_and_empty_files(copy, raw, write):
    write(raw / "val.de", [])
    write(raw / "val.en", [])
    with pytest.raises(UsageError, match="have no line with text in all"):
        copy()
    (raw / "val.de").unlink()
    with pytest.raises(UsageError, match=r"neither .*val\.de nor .*val\.de\.gz"):
        copy()


def test_a_carriage_return_within_a_line_is_a_blank(copy, raw):
    """fairseq would begin another line, and the lines below would lose their translations."""
    (raw / "train.de").write_bytes(b"eins\rzwei\r\ndrei")
    (raw / "train.en").write_bytes(b"one two\nthree\r\n")
    assert (copy() / "train.de").read_bytes() == b"eins zwei\ndrei\n"


def test_a_byte_order_mark_is_no_part_of_the_first_word(copy, raw):
    (raw / "train.de").write_bytes("\ufeffeins\n\ufeffzwei\n".encode())
    (raw / "train.en").write_bytes(b"one\ntwo\n")
    assert (copy() / "train.de").read_text(encoding="utf-8") == "eins\n\ufeffzwei\n"


def test_damaged_files_and_odd_options_are_named(copy, raw):
    with pytest.raises(UsageError, match="--train-lines 0: allowed: 1 or more"):
        copy("--train-lines", 0)
    with pytest.raises(UsageError, match="--languages de en de: allowed: 1 or more, each once"):
        copy("--languages", "de")
    with pytest.raises(UsageError, match=r"train\.de would be replaced by what is made of it"):
        copy("--output", raw)
    packed = gzip.compress((raw / "train.de").read_bytes())
    (raw / "train.de").unlink()
    (raw / "train.de.gz").write_bytes(packed[:-20])
    with pytest.raises(UsageError, match=r"cannot read .*train\.de\.gz: Compressed file ended"):
        copy()
