"""A binarised file without a sentence is named instead of the error of mmap."""

import mmap

import pytest
from common.words import dictionary_with
from fairseq.data import indexed_dataset

from fairseq_ext.common.empty_files import binarised_lines, empty_file_as


def test_an_empty_file_has_the_message(tmp_path):
    path = tmp_path / "train.bin"
    path.touch()
    with pytest.raises(ValueError, match="train holds no sentence"):
        with empty_file_as("train holds no sentence"), path.open("rb") as file:
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def test_other_errors_stay_as_they_are():
    with pytest.raises(ValueError, match="other"), empty_file_as("train holds no sentence"):
        raise ValueError("other")
    with pytest.raises(KeyError), empty_file_as("train holds no sentence"):
        raise KeyError("train")


@pytest.mark.parametrize("count", [0, 2])
@pytest.mark.parametrize("dataset_impl", ["mmap", "cached", "raw"])
def test_lines_are_loaded_unless_there_are_none(tmp_path, dataset_impl, count):
    prefix, words = str(tmp_path / "train.text-label.text"), dictionary_with("a")
    if dataset_impl == "raw":
        (tmp_path / "train.text-label.text").write_text("a a\n" * count, encoding="utf-8")
    else:
        builder = indexed_dataset.make_builder(f"{prefix}.bin", dataset_impl, len(words))
        for _ in range(count):
            builder.add_item(words.encode_line("a a"))
        builder.finalize(f"{prefix}.idx")
    if count:
        lines = binarised_lines(prefix, words, dataset_impl, "train holds no line")
        assert [line.tolist() for line in lines] == [[4, 4, 2]] * count
        return
    with pytest.raises(ValueError, match="^train holds no line$"):
        binarised_lines(prefix, words, dataset_impl, "train holds no line")


def test_a_file_that_is_not_there_is_none(tmp_path):
    assert binarised_lines(str(tmp_path / "train"), dictionary_with("a"), "mmap", "empty") is None
