"""The dataset of datasets."""

import collections

import torch


def test_items_are_those_of_the_pairs(dataset):
    assert len(dataset) == 61
    numbers = collections.Counter(dataset[index][0] for index in range(len(dataset)))
    assert numbers == {"x-y": 25, "y-x": 25, "z-y": 11}
    for pair, start in dataset.starts.items():
        part = dataset.datasets[pair]
        for local in (0, len(part) - 1):
            _, item = dataset[start + local]
            assert torch.equal(item["source"], part[local]["source"])
            assert dataset.size(start + local) == part.size(local)
            assert dataset.num_tokens(start + local) == part.num_tokens(local)


def test_a_batch_is_one_sample_per_pair(dataset):
    batch = dataset.collater([dataset[index] for index in (0, 26, 1, 60)])
    assert list(batch) == ["x-y", "y-x", "z-y"]
    assert [sample["nsentences"] for sample in batch.values()] == [2, 1, 1]
    for pair, sample in batch.items():
        assert sample["net_input"]["pair"] == pair
    assert dataset.collater([]) == {}
