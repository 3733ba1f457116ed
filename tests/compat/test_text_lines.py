"""One rule for the lines of every text that a command reads."""

import gzip
import io

import pytest

from fairseq_ext.compat.text_lines import UnreadableText, decoded, lines_of


def test_only_newlines_end_lines(tmp_path):
    path = tmp_path / "text"
    path.write_bytes("\ufeffone\r\ntwo\x0cstill\u2028two\n\nfour\rstill\n \n".encode())
    expected = ["one", "two\x0cstill\u2028two", "", "four\rstill", " "]
    assert list(lines_of(path)) == expected
    packed = tmp_path / "text.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert list(lines_of(str(packed))) == expected
    path.write_bytes(b"no newline at the end")
    assert list(lines_of(path)) == ["no newline at the end"]
    path.write_bytes(b"")
    assert list(lines_of(path)) == []


def test_the_mark_of_utf_8_is_text_in_other_encodings():
    assert list(decoded(io.BytesIO(b"\xef\xbb\xbfa"), "text", "latin-1")) == ["ï»¿a"]


def test_a_line_that_is_not_utf_8_is_named():
    lines = decoded(io.BytesIO(b"good\nbad \xff\n"), "file")
    assert next(lines) == "good"
    with pytest.raises(UnreadableText, match=r"^file, line 2: not UTF-8 \(invalid start byte\)$"):
        next(lines)


def test_files_that_cannot_be_read_are_named(tmp_path):
    with pytest.raises(UnreadableText, match="^cannot read .*none: No such file or directory$"):
        list(lines_of(tmp_path / "none"))
    path = tmp_path / "cut.gz"
    path.write_bytes(gzip.compress(b"a" * 1000)[:-9])
    with pytest.raises(UnreadableText, match="^cannot read .*cut.gz: Compressed file ended"):
        list(lines_of(path))
