"""Which data files are refused, and which that fairseq alone can read are taken."""

import struct

import numpy as np
import pytest
from common.words import numbered_words

from fairseq_ext.compat.data import data_files
from fairseq_ext.compat.data.data_files import UnreadableFile


@pytest.fixture
def corpus(tmp_path):
    """The path, without its ending, of a corpus of three sentences; numbers up to 7."""
    import torch
    from fairseq.data.indexed_dataset import MMapIndexedDatasetBuilder

    path = str(tmp_path / "train.xx-yy.xx")
    builder = MMapIndexedDatasetBuilder(f"{path}.bin", dtype=np.int32)
    for tokens in ([4, 5, 2], [7, 2], [6, 6, 6, 2]):
        builder.add_item(torch.tensor(tokens))
    builder.finalize(f"{path}.idx")
    return path


def read(path, symbols=None):
    from fairseq.data import indexed_dataset

    return indexed_dataset.make_dataset(path, "mmap", dictionary=symbols)


def test_index_of_a_part(corpus):
    """An index of the last sentence alone over the file of the whole corpus."""
    with open(f"{corpus}.idx", "rb") as stream:
        content = stream.read()
    with open(f"{corpus}.idx", "wb") as stream:
        stream.write(content[:18] + struct.pack("<QiQ", 1, 4, 20))
    dataset = read(corpus, numbered_words(8))
    assert len(dataset) == 1 and dataset[0].tolist() == [6, 6, 6, 2]


def test_cut_off(corpus):
    with open(f"{corpus}.bin", "r+b") as stream:
        stream.truncate(32)
    with pytest.raises(UnreadableFile, match="32 bytes where its .idx file says 36"):
        read(corpus)


def test_place_before_the_file(corpus):
    with open(f"{corpus}.idx", "r+b") as stream:
        stream.seek(data_files.HEADER + 3 * 4)
        stream.write(struct.pack("<q", -4))
    with pytest.raises(UnreadableFile, match="damaged"):
        read(corpus)


def test_no_sentence(tmp_path):
    from fairseq.data.indexed_dataset import MMapIndexedDatasetBuilder

    builder = MMapIndexedDatasetBuilder(str(tmp_path / "empty.bin"), dtype=np.int32)
    builder.finalize(str(tmp_path / "empty.idx"))
    data_files.check_files(str(tmp_path / "empty"), "mmap")


def test_numbers_without_a_symbol(corpus):
    assert len(read(corpus, numbered_words(8))) == 3
    with pytest.raises(UnreadableFile, match="holds the number 7, .* 7 symbols"):
        read(corpus, numbered_words(7))


def test_large_files_are_looked_at_in_part(tmp_path, monkeypatch):
    """The pieces are evenly spaced and no more than the limit."""
    numbers = np.arange(1, 4097, dtype=np.uint16)
    numbers.tofile(tmp_path / "x.bin")
    monkeypatch.setattr(data_files, "PIECE", 16)
    monkeypatch.setattr(data_files, "LIMIT", 1024)
    size = 2 * len(numbers)
    largest = data_files._largest_number(str(tmp_path / "x.bin"), 0, size, np.uint16)
    # 64 times 16 numbers were allowed, of the last eighth the first 16
    assert largest == 4096 - 128 + 16
    monkeypatch.setattr(data_files, "LIMIT", size)
    assert data_files._largest_number(str(tmp_path / "x.bin"), 1, size, np.uint16) == 4096
