"""A binarised file without a sentence is named instead of the error of mmap."""

import mmap

import pytest

from fairseq_ext.streams.empty_files import empty_file_as


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
