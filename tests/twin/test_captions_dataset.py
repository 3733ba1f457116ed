"""Batches of images and captions, and the feature files of images; errors by name."""

import numpy as np
import pytest
import torch
from twin.test_captions_task import prepared, task_of

from fairseq_ext.twin.captions.dataset import CaptionDataset, feature_paths, read_features


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return prepared(tmp_path_factory.mktemp("captions"), {"train": 40, "valid": 8})


def test_batches(data):
    task = task_of(data)
    task.load_dataset("valid")
    dataset = task.datasets["valid"]
    order = dataset.ordered_indices()
    assert list(dataset.sizes[order]) == sorted(dataset.sizes)
    batch = dataset.collater([dataset[number] for number in (0, 2)])
    inputs, pad = batch["net_input"], task.target_dictionary.pad()
    for row, number in enumerate((0, 2)):
        features, length = dataset[number]["source"], inputs["src_lengths"][row]
        assert torch.equal(inputs["src_tokens"][row, :length], features)
        assert not inputs["src_tokens"][row, length:].any()
        target = batch["target"][row][batch["target"][row].ne(pad)]
        prev = inputs["prev_output_tokens"][row][: len(target)]
        assert torch.equal(prev, torch.cat([target[-1:], target[:-1]]))
    assert batch["ntokens"] == batch["target"].ne(pad).sum()
    assert torch.equal(dataset[0]["source"], dataset[1]["source"])


def test_a_training_set_is_shuffled_within_lengths(data):
    task = task_of(data)
    task.load_dataset("train")
    dataset = task.datasets["train"]
    np.random.seed(0)
    orders = [dataset.ordered_indices() for _ in range(2)]
    assert (orders[0] != orders[1]).any()
    assert all((np.diff(dataset.sizes[order]) >= 0).all() for order in orders)


@pytest.mark.parametrize("shape", [(5,), (3, 5), (2, 3, 5)])
def test_shapes_of_features(tmp_path, shape):
    array = np.arange(np.prod(shape), dtype=np.float64).reshape(shape)
    np.save(tmp_path / "a.npy", array)
    features = read_features(str(tmp_path / "a.npy"))
    assert features.dtype == torch.float32 and features.shape == (array.size // 5, 5)
    assert features.flatten().tolist() == array.flatten().tolist()


def test_files_that_hold_no_features_are_named(tmp_path):
    np.save(tmp_path / "words.npy", np.array(["a"]))
    np.save(tmp_path / "empty.npy", np.zeros((0, 4)))
    np.save(tmp_path / "number.npy", np.float32(3))
    (tmp_path / "text.npy").write_text("1 2 3", encoding="utf-8")
    for name in ("words", "empty", "number", "text", "none"):
        with pytest.raises(ValueError, match=rf"{name}.npy: no .npy file of features"):
            read_features(str(tmp_path / f"{name}.npy"))


def test_every_caption_has_a_line_with_its_features(data):
    folder = str(data)
    with pytest.raises(ValueError, match="valid.features has 10 lines, there are 11 captions"):
        feature_paths(folder, folder, "valid", 11)
    with pytest.raises(FileNotFoundError, match="there is no .*test.features, which names"):
        feature_paths(folder, folder, "test", 1)


def test_a_dataset_without_captions_makes_batches(data):
    path = str(data / "images" / "valid0.npy")
    dataset = CaptionDataset([path], task_of(data).target_dictionary)
    batch = dataset.collater([dataset[0]])
    assert batch["target"] is None and "prev_output_tokens" not in batch["net_input"]
    assert dataset.collater([]) == {}
