"""Which captions are scored in validation, and with the n-grams of which set."""

import shutil

import pytest
from common import inprocess
from twin import test_captions_task

from fairseq_ext import __main__ as command

BLEU = ["--eval-bleu", "--eval-args", '{"beam": 1, "max_len_b": 5}']
SEARCH = ["--eval-cider", *BLEU]
ARCH = "twin_caption_lstm"


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """valid and valid1, and "big", the training set under another name."""
    sizes = {"train": 24, "valid": 9, "test": 5}
    folder = test_captions_task.prepared(tmp_path_factory.mktemp("captions"), sizes)
    for path in [*folder.glob("train.*"), *folder.glob("test.*")]:
        name = path.name.replace("train", "big").replace("test", "valid1")
        shutil.copy(path, folder / name)
    return folder


@pytest.fixture(scope="module")
def checkpoint(data, tmp_path_factory):
    """A model that describes some of the images."""
    folder = tmp_path_factory.mktemp("run")
    words = ("--max-update", 40, "--lr", 0.03, "--disable-validation", *BLEU)
    test_captions_task.train(data, folder, ARCH, *words)
    return folder / "checkpoint_last.pt"


@pytest.fixture
def scores(data, checkpoint, tmp_path):
    """Function (options...) -> {set: (BLEU, CIDEr-D)} of the model after one more update of 0."""

    def scores(*words):
        more = ["--restore-file", checkpoint, "--max-update", 41, "--no-save", *SEARCH, *words]
        more += ["--lr", 1e-12, "--ignore-unused-valid-subsets"]
        records = test_captions_task.train(data, tmp_path, ARCH, *more)
        named = {name: value for record in records for name, value in record.items()}
        sets = [name[: -len("_cider")] for name in named if name.endswith("_cider")]
        return {subset: (named[f"{subset}_bleu"], named[f"{subset}_cider"]) for subset in sets}

    return scores


def test_each_set_is_scored_with_its_own_n_grams(scores):
    alone = {**scores("--valid-subset", "valid"), **scores("--valid-subset", "valid1")}
    assert alone["valid"][1] > 20 and alone["valid"] != alone["valid1"]
    for subsets in ("valid,valid1", "valid1,valid"):
        assert scores("--valid-subset", subsets) == alone
    assert scores("--valid-subset", "valid", "--train-subset", "big") == {"valid": alone["valid"]}


def test_a_training_set_is_scored_if_it_is_validated(data, checkpoint, scores):
    """By both commands, like a set of another name with the same images."""
    expected = scores("--valid-subset", "big")["big"]
    assert scores("--valid-subset", "valid,train")["train"] == expected
    words = [data, "--task", "image_captioning", "--path", checkpoint, "--max-tokens", 60, *SEARCH]
    (record,) = inprocess.validate(*words, "--valid-subset", "train")
    assert (record["train_bleu"], record["train_cider"]) == expected


def test_an_image_is_scored_with_its_first_caption_that_fits(data):
    task = test_captions_task.task_of(data, *SEARCH)
    task.load_dataset("valid")
    dataset = task.datasets["valid"]
    # images 0, 4 and 8 have two captions each
    assert sorted(dataset.references) == [0, 2, 3, 4, 5, 7, 8, 9, 10]
    dataset.lengths = dataset.lengths.copy()
    dataset.lengths[[0, 2]] = 9
    everything = dataset.ordered_indices()
    for limit, first in ((8, [1, 3, 4, 5, 7, 8, 9, 10]), (9, [0, 2, 3, 4, 5, 7, 8, 9, 10])):
        fitting, _ = dataset.filter_indices_by_size(everything, (None, limit))
        assert sorted(dataset.references) == first
        assert all(len(dataset.references[number]) == 2 for number in (first[0], 5, 10))
        batch = dataset.collater([dataset[number] for number in sorted(fitting)])
        assert [number for number, texts in zip(batch["id"], batch["references"]) if texts] == first
    # n-grams are those of all images, however long their captions
    assert dataset.cider.images == 9


def test_without_scores_no_text_is_read(data):
    task = test_captions_task.task_of(data)
    task.load_dataset("valid")
    dataset = task.datasets["valid"]
    assert "references" not in dataset.collater([dataset[0]])
    for option in ("--eval-bleu", "--eval-cider"):  # one of them is enough
        task = test_captions_task.task_of(data, option)
        task.load_dataset("valid")
        assert task.datasets["valid"].references


def test_distance_of_a_run_that_was_scored(data, checkpoint, tmp_path):
    """The options of its search say nothing about distances."""
    words = ["twin-distance", checkpoint, data, "--subset", "valid", "--output", tmp_path / "out"]
    assert command.main([str(word) for word in words]) == 0
