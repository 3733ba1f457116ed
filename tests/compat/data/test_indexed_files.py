"""Data of --dataset-impl lazy and cached (fairseq_ext/compat/data/indexed_files.py)."""

import os

import numpy as np
import pytest
import torch
from fairseq.data import indexed_dataset

from fairseq_ext.compat.data.data_files import UnreadableFile

SENTENCES = [[4, 5, 2], [7, 2], [], [6, 6, 6, 2]]


@pytest.fixture
def corpus(tmp_path):
    """The path, without its ending, of a corpus in the old format."""
    path = str(tmp_path / "train.xx-yy.xx")
    builder = indexed_dataset.make_builder(f"{path}.bin", "cached")
    for tokens in SENTENCES:
        builder.add_item(torch.tensor(tokens, dtype=torch.int32))
    builder.finalize(f"{path}.idx")
    return path


def read(path, impl):
    return indexed_dataset.make_dataset(path, impl, fix_lua_indexing=True)


@pytest.mark.parametrize("impl", ["lazy", "cached"])
def test_sentences(corpus, impl):
    dataset = read(corpus, impl)
    assert [dataset[index].tolist() for index in np.arange(4)] == SENTENCES
    if impl == "cached":
        dataset.prefetch([3, 0])
        assert dataset.data_file is None
        assert [dataset[index].tolist() for index in (3, 0, 1)] == [[6, 6, 6, 2], [4, 5, 2], [7, 2]]


def test_forks_do_not_move_the_position(corpus):
    dataset = read(corpus, "lazy")
    dataset[0]  # opens the file, as a training does before it forks
    file = dataset.data_file
    file.seek(0)
    child = os.fork()
    if not child:
        file.seek(16)
        file.readinto(np.empty(2, dtype=dataset.dtype))
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    numbers = np.empty(3, dtype=dataset.dtype)
    file.readinto(numbers)
    assert (numbers - 1).tolist() == SENTENCES[0]


@pytest.mark.parametrize("impl", ["lazy", "cached"])
def test_a_file_that_is_too_short(corpus, impl):
    with open(f"{corpus}.bin", "r+b") as stream:
        stream.truncate(30)
    dataset = read(corpus, impl)
    assert dataset[1].tolist() == [7, 2]
    with pytest.raises(UnreadableFile, match="30 bytes, and its .idx file says more"):
        dataset[3]
