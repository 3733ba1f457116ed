"""Checksums of files are those of their contents, whatever their size."""

import hashlib

import pytest

from fairseq_ext.compat.file_sums import BLOCK, add_file, file_sum


@pytest.mark.parametrize("size", [0, 1, BLOCK, 2 * BLOCK + 1])
def test_the_sum_is_that_of_the_contents(size, tmp_path):
    contents, path = bytes(range(256)) * (size // 256) + b"x" * (size % 256), tmp_path / "file"
    path.write_bytes(contents)
    assert file_sum(path) == file_sum(str(path)) == hashlib.sha256(contents).hexdigest()


def test_several_files_have_one_sum(tmp_path):
    total = hashlib.sha256(b"a")
    for text in ("b", "c"):
        (tmp_path / text).write_text(text)
        add_file(total, tmp_path / text)
    assert total.hexdigest() == hashlib.sha256(b"abc").hexdigest()
