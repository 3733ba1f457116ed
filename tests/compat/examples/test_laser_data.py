"""laser reads binarised data of every format (fairseq_ext/compat/examples/laser_data.py)."""

import pytest
import torch
from common.words import numbered_words


@pytest.mark.parametrize("kind", ["mmap", "lazy"])
def test_every_format(example, tmp_path, kind):
    from fairseq.data import indexed_dataset

    module = example("laser/laser_src", "laser_task")
    prefix = str(tmp_path / "train.xx")
    builder = indexed_dataset.make_builder(prefix + ".bin", kind, len(numbered_words(12)))
    sentences = [torch.tensor([5, 6, 2]), torch.tensor([9, 2])]
    for sentence in sentences:
        builder.add_item(sentence)
    builder.finalize(prefix + ".idx")
    dataset = module.IndexedDataset(prefix, fix_lua_indexing=True)
    assert [dataset[number].tolist() for number in range(2)] == [[5, 6, 2], [9, 2]]
    assert list(dataset.sizes) == [3, 2]
