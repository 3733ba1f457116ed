"""Pairs of which --train-only leaves nothing take no part in the updates."""

from types import SimpleNamespace

import pytest
from common import inprocess
from fairseq import options, tasks
from streams.folders import random_lines, write_pair

from fairseq_ext.streams.parameter_groups import check_frozen

PAIRS = "xx-yy,zz-yy,yy-xx"
ARCH = ["--arch", "multiway_gru", "--embed-dim", 8, "--hidden-size", 8, "--context-size", 8]
ARCH += ["--readout-size", 8, "--init-hidden-size", 8, "--init-size", 8]
# of yy-xx nothing is trained
SOME = ["--train-only", "encoder.xx,encoder.zz,decoder.yy"]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("frozen")
    for split, count in (("train", 12), ("valid", 4)):
        for pair in ("xx-yy", "zz-yy"):
            lines = {lang: random_lines(lang, count) for lang in pair.split("-")}
            write_pair(folder, split, pair, **lines)
    return folder


def made(data, *flags):
    """The task of a run after its model was built."""
    words = [data, "--task", "multiway_translation", "--lang-pairs", PAIRS, *ARCH, *flags]
    cfg = inprocess.configuration(
        options.get_training_parser(), [*words, "--optimizer", "adam", "--batch-size", 4]
    )
    task = tasks.setup_task(cfg.task)
    task.build_model(cfg.model)
    return task


SCHEDULES = {
    "joint": ["--schedule", "joint"],
    "cycle": ["--schedule", "cycle"],
    "main+aux": ["--schedule", "main+aux", "--main-pair", "xx-yy"],
    "temperature": ["--schedule", "temperature"],
    "join": ["--join-at", "zz-yy=2"],
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_frozen_pair_takes_no_update(name, data):
    task = made(data, *SOME, *SCHEDULES[name])
    assert task.frozen == ["yy-xx"]
    task.load_dataset("train", combine=True)
    iterator = task.get_batch_iterator(task.dataset("train"), max_sentences=4, seed=1)
    batches = list(iterator.next_epoch_itr())
    seen = {pair for batch in batches for pair in batch}
    assert seen <= {"xx-yy", "zz-yy"} and "xx-yy" in seen
    expected = {"cycle": 6, "temperature": 6, "join": 3}.get(name, 3)
    assert len(batches) == expected
    task.load_dataset("valid")  # its score is of interest all the same
    assert set(task.dataset("valid").datasets) == set(PAIRS.split(","))
    task.from_checkpoint = True  # fairseq-validate --valid-subset train
    task.load_dataset("train")
    assert set(task.dataset("train").datasets) == set(PAIRS.split(","))


def test_all_pairs_without_the_option(data):
    assert made(data).trained_pairs == PAIRS.split(",")
    assert made(data, "--train-only", "shared").trained_pairs == PAIRS.split(",")


@pytest.mark.parametrize(
    "flags, message",
    [
        (
            [*SOME, "--schedule", "main+aux", "--main-pair", "yy-xx"],
            "--main-pair yy-xx: --train-only .* trains none of its parameters; must be one of xx",
        ),
        ([*SOME, "--join-at", "yy-xx=5"], "--join-at yy-xx=5: --train-only .* trains none"),
        ([*SOME, "--join-at", "xx-yy=5,zz-yy=6"], "one pair must take part from the first update"),
    ],
)
def test_a_schedule_that_needs_a_frozen_pair_is_refused(flags, message, data):
    with pytest.raises(ValueError, match=message):
        made(data, *flags)


def test_a_run_without_a_trained_pair_is_refused():
    cfg = SimpleNamespace(train_only="decoder.zz", main_pair=None, join_at=None)
    with pytest.raises(ValueError, match="decoder.zz: trains no parameter that xx-yy, yy-xx use"):
        check_frozen(["xx-yy", "yy-xx"], cfg, ["xx-yy", "yy-xx"], "cycle")


def test_workers_share_out_the_trained_pairs(data):
    task = made(data, *SOME, "--pair-parallel")
    task.load_dataset("train", combine=True)
    batches = {pair: [[0]] for pair in task.dataset("train").datasets}
    assert task.pair_parallel.assign(batches, 2, "cycle") == [["xx-yy"], ["zz-yy"]]
    task.pair_parallel.assignment = None
    with pytest.raises(ValueError, match=r"3 workers: there are only 2 pairs \(xx-yy, zz-yy\)"):
        task.pair_parallel.assign(batches, 3, "cycle")


def test_the_run_ends_when_the_trained_pairs_have_left(data, tmp_path):
    """--pair-patience neither judges nor waits for what cannot improve."""
    with inprocess.logged_lines() as lines:
        inprocess.train(
            data, "--task", "multiway_translation", "--lang-pairs", PAIRS, *ARCH, *SOME,
            "--optimizer", "adam", "--lr", 1e-9, "--batch-size", 12, "--pair-patience", 1,
            "--save-dir", tmp_path, "--no-save", "--no-progress-bar", "--max-epoch", 9,
        )  # fmt: skip
    assert any("all pairs have left" in line for line in lines)
    assert not any(line.startswith("yy-xx: no better score") for line in lines)
