"""Stopped after any update and resumed, a training is the uninterrupted one to the last bit.

Compared are parameters, each parameter's optimiser state with its number of steps, the position in
the data, the meters and all that is logged afterwards. tests/campaigns kills processes instead.
"""

import random
import shutil
from pathlib import Path
from typing import Dict, List

import pytest
from campaigns.scenarios import (
    DUAL,
    JOIN,
    MULTIWAY,
    OPTIMISE,
    SCENARIOS,
    SYNTHETIC,
    write_synthetic,
)
from common import inprocess
from common.checkpoints import compared, differences, is_time, meters
from dual.reviews import binarise, write_reviews
from fairseq import options
from fairseq_cli import train as train_command

TEMPERATURE = [*MULTIWAY, "--schedule", "temperature", "--schedule-temperature", 2]
MAIN = ["--schedule", "main+aux", "--main-pair", "xx-yy"]
EARLY = ["--join-at", "xx-zz=5,yy-zz=11"]
PATIENCE = ["--pair-patience", 1, "--lr", 0.1, "--save-interval-updates", 4]
# what the campaign does not train: more combinations of the schedules
MORE = {
    "joint, --join-at": ("three", [*MULTIWAY, "--schedule", "joint", *JOIN]),
    "main+aux, --join-at": ("three", [*MULTIWAY, *MAIN, *JOIN]),
    "temperature, two pairs join": ("three", [*TEMPERATURE, *EARLY]),
    "temperature, --join-at, --update-freq": (
        "three",
        [*TEMPERATURE, *JOIN, "--batch-size", 20, "--update-freq", 2],
    ),
    "cycle, --join-at, --update-freq": (
        "three",
        [*MULTIWAY, "--schedule", "cycle", *EARLY, "--batch-size", 20, "--update-freq", "1,2"],
    ),
    "temperature, --join-at, --num-workers": ("three", [*TEMPERATURE, *JOIN, "--num-workers", 2]),
    "temperature, --join-at, --pair-patience": ("three", [*TEMPERATURE, *JOIN, *PATIENCE]),
    "joint, --pair-patience": ("three", [*MULTIWAY, "--schedule", "joint", *PATIENCE]),
    "main+aux, --pair-patience": ("three", [*MULTIWAY, *MAIN, *PATIENCE]),
    "cycle, --num-workers": (
        "three",
        [*MULTIWAY, "--schedule", "cycle", "--update-freq", 2, "--num-workers", 2],
    ),
    "dual, --join-at": (
        "three",
        [*DUAL, "--batch-size", 24, "--schedule", "temperature"]
        + ["--lang-pairs", "xx-yy,zz-yy", "--join-at", "zz-yy=7,yy-zz=7"],
    ),
}
ALL = {**SCENARIOS, **SYNTHETIC, **MORE}
# validations decide when these end: fewer of them
SELDOM = ("patience", "duo", "classifier")


def train(words: List, save_dir: Path) -> List[Dict]:
    """fairseq-train in this process; the records of the log, without times."""
    words = [*words, "--save-dir", save_dir, "--no-progress-bar"]
    cfg = inprocess.configuration(options.get_training_parser(), words)
    inprocess._forget_other_runs()
    with inprocess.logged_lines() as lines:
        train_command.main(cfg)
    return [
        {name: value for name, value in record.items() if not is_time(name)}
        for record in inprocess.records(lines)
    ]


@pytest.fixture(scope="module")
def corpora(toy_corpus, tmp_path_factory):
    """{name: folder of binarised data} of the scenarios."""
    labels = tmp_path_factory.mktemp("labels")
    write_reviews(labels, random.Random(1))
    lines = write_synthetic(toy_corpus.three, tmp_path_factory.mktemp("lines") / "bin")
    return {
        "two": toy_corpus.two,
        "three": toy_corpus.three,
        "labels": binarise(labels),
        "lines": lines,
    }


@pytest.fixture(scope="module")
def whole(corpora, tmp_path_factory):
    """Function (scenario) -> (words, folder, records) of the uninterrupted training."""
    finished = {}

    def whole(name: str):
        if name not in finished:
            corpus, words = ALL[name]
            interval = 3 if any(part in name for part in SELDOM) else 1
            words = [*OPTIMISE, "--save-interval-updates", interval, *words]
            folder = tmp_path_factory.mktemp("whole")
            words = [corpora[corpus], *words]
            finished[name] = words, folder, train(words, folder)
        return finished[name]

    return whole


def stops(folder: Path) -> List[Path]:
    """The checkpoints of a training but for its end, in their order."""
    paths = [*folder.glob("checkpoint_[0-9]*.pt"), *folder.glob("checkpoint[0-9]*.pt")]
    end = compared(folder / "checkpoint_last.pt")["history"]["num_updates"]
    updates = {path: compared(path)["history"]["num_updates"] for path in paths}
    return sorted((path for path in paths if updates[path] < end), key=updates.get)


def check(training, stop: Path, folder: Path) -> None:
    """Resume at a checkpoint and compare the end."""
    words, before, log = training
    shutil.copy(stop, folder / "checkpoint_last.pt")
    again = train(words, folder)
    name = "checkpoint_last.pt"
    assert differences(compared(before / name), compared(folder / name)) == []
    assert differences(meters(before / name), meters(folder / name)) == []
    assert again and again == log[-len(again) :]


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
def test_every_update(name, whole, tmp_path):
    training = whole(name)
    paths = stops(training[1])
    assert len(paths) >= 2  # how soon pairs leave depends on the rounding of the processor
    for number, path in enumerate(paths):
        folder = tmp_path / str(number)
        folder.mkdir()
        check(training, path, folder)
        shutil.rmtree(folder)


@pytest.mark.parametrize(
    "stop", ["checkpoint_1_11.pt", pytest.param("checkpoint1.pt", marks=pytest.mark.slow)]
)
def test_around_the_joining_of_a_pair(stop, whole, tmp_path):
    """The pair joins after 11 updates, in the first epoch of 12."""
    training = whole("multiway, temperature, --join-at")
    check(training, training[1] / stop, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["multiway, cycle, --join-at", "dual, joint", "routed"])
def test_saving_changes_nothing(name, whole, corpora, tmp_path):
    """A training without any checkpoint but the last one ends alike."""
    words, folder, _ = whole(name)
    train([*words, "--save-interval-updates", 0, "--no-epoch-checkpoints"], tmp_path)
    ends = [compared(path / "checkpoint_last.pt") for path in (folder, tmp_path)]
    for end in ends:
        end["extra"].pop("best", None), end["extra"].pop("val_loss", None)
    assert differences(*ends) == []
