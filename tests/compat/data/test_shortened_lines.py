"""--shorten-method of the tasks that cut lines into blocks."""

import shutil

import pytest
import torch
from common import inprocess
from fairseq import options, tasks
from fairseq.data import ListDataset, MonolingualDataset
from fairseq.data.shorten_dataset import RandomCropDataset

TASKS = {
    "masked_lm": ["--arch", "roberta_base", "--sample-break-mode", "eos"],
    "language_modeling": ["--arch", "transformer_lm", "--sample-break-mode", "eos"],
    "denoising": ["--arch", "bart_base", "--sample-break-mode", "eos", "--replace-length", 1],
}


@pytest.fixture
def load(toy_corpus, tmp_path):
    """Function (task, options...) -> the training set."""
    shutil.copy(f"{toy_corpus.two}/dict.xx.txt", tmp_path / "dict.txt")
    for name in ("bin", "idx"):
        shutil.copy(f"{toy_corpus.two}/train.xx-yy.xx.{name}", tmp_path / f"train.{name}")

    def load(name, *more):
        words = [tmp_path, "--task", name, *TASKS[name], "--max-tokens", 99, *more]
        cfg = inprocess.configuration(options.get_training_parser(), words)
        task = tasks.setup_task(cfg.task)
        task.load_dataset("train")
        return task.datasets["train"]

    return load


def tokens(item):
    """The source of an item of any of the tasks."""
    return (item["source"] if "source" in item else item["net_input.src_tokens"]).tolist()


def test_datasets_of_plugins_need_not_wrap_another():
    class Lines(MonolingualDataset):
        def __init__(self, lines):
            self.lines = lines

    Lines([]).set_epoch(2)


@pytest.mark.parametrize("name", TASKS)
def test_each_epoch_has_other_crops(name, load):
    """Without the layer all epochs have those of the first."""
    quiet = {"masked_lm": ["--mask-prob", 0.01], "denoising": ["--mask", 0, "--rotate", 0]}
    noise = quiet.get(name, [])
    dataset = load(name, "--shorten-method", "random_crop", "--tokens-per-sample", 3, *noise)

    def lines(epoch):
        dataset.set_epoch(epoch)
        return [tokens(dataset[number]) for number in range(40)]

    first, second = lines(1), lines(2)
    assert lines(1) == first
    assert sum(line != again for line, again in zip(first, second)) > 10
    assert [len(line) for line in first] == [len(line) for line in second]


@pytest.mark.parametrize("method", ["truncate", "random_crop"])
@pytest.mark.parametrize("name", ["masked_lm", "denoising"])
def test_shortened_lines_have_room_for_symbols(method, name, load):
    """<s> and </s> count: without the layer masked_lm skips each line that was cut."""
    dataset = load(name, "--shorten-method", method, "--tokens-per-sample", 4)
    assert max(dataset.size(number) for number in range(len(dataset))) == 4
    batch = dataset.collater([dataset[0], dataset[1]])
    assert batch["net_input"]["src_tokens"].size(1) == 4


def test_every_token_is_in_a_crop():
    """Without the layer the last one is in none."""
    lines = ListDataset([torch.arange(length) for length in (2, 3, 4, 6)], [2, 3, 4, 6])
    crops = RandomCropDataset(lines, 3)
    seen = [set() for _ in range(len(lines))]
    for epoch in range(40):
        crops.set_epoch(epoch)
        for index, places in enumerate(seen):
            crop = crops[index].tolist()
            assert crop == list(range(crop[0], crop[0] + min(3, len(lines[index]))))
            places.update(crop)
    assert seen == [set(range(length)) for length in (2, 3, 4, 6)]
