"""Arrays of --use-plasma-view."""

import gc
import os
import pickle

import numpy as np
import pytest

from fairseq_ext.compat.versions.shared_arrays import SharedArray, plasma_is_missing

if plasma_is_missing() is not None:
    pytest.skip("pyarrow has the plasma store", allow_module_level=True)


def test_an_array_is_a_file_until_it_is_no_longer_used(tmp_path):
    values = np.arange(12).reshape(6, 2)
    shared = SharedArray(values, "data/train", ("key", 0), str(tmp_path / "plasma"))
    assert len(shared) == 6 and np.array_equal(shared.array, values)
    assert not shared.array.flags.writeable
    (name,) = os.listdir(tmp_path)
    assert name.startswith("plasma.")
    del shared
    gc.collect()
    assert os.listdir(tmp_path) == []


def test_another_process_reads_the_file_and_leaves_it(tmp_path):
    shared = SharedArray(np.arange(1000), "data/train", 0, str(tmp_path / "plasma"))
    pickled = pickle.dumps(shared)
    assert len(pickled) < 500
    child = os.fork()
    if child == 0:
        os._exit(int(pickle.loads(pickled).array[99]))
    # not any child: a process of another test may end meanwhile
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 99
    child = os.fork()
    if child == 0:
        shared._remove()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert os.path.exists(shared.path)


def test_blocks_are_the_same_with_it(tmp_path):
    import torch
    from fairseq.data import TokenBlockDataset, plasma_utils

    sentences = [torch.tensor([5, 6, 2]), torch.tensor([7, 2]), torch.tensor([8, 9, 10, 2])]
    sizes = np.array([3, 2, 4])
    settings = {"block_size": 4, "pad": 1, "eos": 2, "break_mode": "none"}
    shared = {"use_plasma_view": True, "split_path": "train", "plasma_path": str(tmp_path / "p")}
    blocks = TokenBlockDataset(sentences, sizes, **settings)
    views = TokenBlockDataset(sentences, sizes, **settings, **shared)
    assert [block.tolist() for block in views] == [block.tolist() for block in blocks]
    assert len(os.listdir(tmp_path)) == 3
    assert plasma_utils.PlasmaStore(path=str(tmp_path / "p")).server.pid is None
