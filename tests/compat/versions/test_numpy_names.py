"""What numpy dropped is there for the modules that use it, and for nobody else."""

import numpy
import pytest

from fairseq_ext.compat.patch_registry import since

NEW = pytest.mark.skipif(
    since("numpy", 1, 24)() is not None, reason="numpy before 1.24 has these names"
)


def test_mask_without_overlap():
    from fairseq.data.data_utils import compute_mask_indices

    mask = compute_mask_indices((2, 50), None, 0.3, 5, no_overlap=True)
    assert mask.shape == (2, 50) and mask.any()


def test_percentile_keeps_its_old_argument():
    from fairseq.data import data_utils

    values = numpy.arange(10)
    assert data_utils.np.percentile(values, 50, interpolation="lower") == 4
    assert data_utils.np.percentile(values, 50) == numpy.percentile(values, 50)


def test_buckets():
    from fairseq.data.data_utils import get_buckets

    assert list(get_buckets(numpy.array([3, 5, 5, 9]), 2)) == [5, 9]


def test_token_blocks():
    import torch
    from fairseq.data import TokenBlockDataset

    lines = [torch.tensor([4, 5, 6, 2]), torch.tensor([7, 2])]
    blocks = TokenBlockDataset(lines, [4, 2], 3, pad=1, eos=2, break_mode="none")
    assert [block.tolist() for block in blocks] == [[4, 5, 6], [2, 7, 2]]


def test_bucketed_pairs():
    import torch
    from fairseq.data import Dictionary, LanguagePairDataset

    dictionary = Dictionary()
    lines = [torch.tensor([4, 2]), torch.tensor([4, 4, 4, 2])]
    sizes = numpy.array([2, 4])
    dataset = LanguagePairDataset(lines, sizes, dictionary, lines, sizes, dictionary, num_buckets=2)
    assert dataset.bucketed_num_tokens.dtype == numpy.int64


@NEW
def test_numpy_itself_stays_new():
    from fairseq.modules import dynamic_crf_layer

    assert dynamic_crf_layer.np.float is float
    assert "float" not in vars(numpy)
    assert dynamic_crf_layer.np.ndarray is numpy.ndarray


def test_offsets_past_two_gib(tmp_path):
    """Sizes merged from workers' files are numpy.int32; 3 * 2**30 items of 8 bytes are 24 GiB."""
    from fairseq.data.indexed_dataset import MMapIndexedDataset, MMapIndexedDatasetBuilder

    builder = MMapIndexedDatasetBuilder(tmp_path / "data.bin", dtype=numpy.int64)
    builder._sizes = [numpy.int32(2**30)] * 3
    builder.finalize(tmp_path / "data.idx")
    index = MMapIndexedDataset.Index(tmp_path / "data.idx")
    assert index._pointers.tolist() == [0, 2**33, 2**34]
