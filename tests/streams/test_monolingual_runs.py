"""Trainings with synthetic pairs: resumed bit for bit, on two workers, validated as before."""

import shutil

import pytest
import torch
from common import inprocess
from common.workers import Runs, after_update, largest_difference, parameters
from fairseq import checkpoint_utils
from streams.monolingual_runs import DUAL, SYSTEMS, train, write_data

LINES = ["--monolingual", "xx,yy"]
SCHEDULES = {
    "joint": [],
    "cycle": ["--schedule", "cycle", "--synthetic-sources", "sampling", "--synthetic-tag"],
    "main+aux": ["--schedule", "main+aux", "--main-pair", "xx-yy", "--synthetic-sources"]
    + ["noised_beam"],
    "temperature": ["--schedule", "temperature", "--store-ema", "--synthetic-ema"]
    + ["--ema-decay", 0.8, "--synthetic-share", "0=0.2,8=0.7"],
}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_data(tmp_path_factory.mktemp("lines"))


def stored(path):
    # scores of validations are of NumPy's types, which fairseq_ext lets its loader read
    return checkpoint_utils.torch.load(path, map_location="cpu", weights_only=True)


def check_resumed(data, folder, flags, updates, stop, after=()):
    """A run that stops after ``stop`` updates ends as the one that does not; returns its log."""
    whole, resumed = folder / "whole", folder / "resumed"
    flags = [*flags, "--dropout", 0.2]
    records = train(data, whole, updates, *flags, "--save-interval-updates", stop, *after)
    resumed.mkdir()
    middle = next(whole.glob(f"checkpoint_*_{stop}.pt"))
    shutil.copy(middle, resumed / "checkpoint_last.pt")
    train(data, resumed, updates, *flags, "--save-interval-updates", stop, *after)
    ends = [stored(end / "checkpoint_last.pt") for end in (whole, resumed)]
    for name, tensor in ends[0]["model"].items():
        assert torch.equal(tensor, ends[1]["model"][name]), name
    states = [end["extra_state"]["train_iterator"] for end in ends]
    assert states[0] == states[1]
    assert any(
        not torch.equal(tensor, stored(middle)["model"][name])
        for name, tensor in ends[0]["model"].items()
    )
    return records


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_resumed_run_is_the_uninterrupted_run(schedule, data, tmp_path):
    flags = [*SYSTEMS["dual"], *LINES, *SCHEDULES[schedule]]
    records = check_resumed(data, tmp_path, flags, 9, 4)
    logged = {name for record in records for name in record}
    assert {"xx-yy@mono_loss", "yy-xx@mono_loss", "xx-yy_loss"} <= logged


@pytest.fixture(scope="module")
def folders(data, tmp_path_factory):
    """Two data folders, of which epochs take turns; the second has other and fewer sentences."""
    other = tmp_path_factory.mktemp("turns") / "bin"
    shutil.copytree(data, other)
    for file in data.glob("valid.xx-yy.*"):
        lang, ending = file.name.split(".")[-2:]
        shutil.copy(file, other / f"train.xx-yy.{lang}.{ending}")
        shutil.copy(file, other / f"train.{lang}-None.{lang}.{ending}")
    return f"{data}:{other}"


@pytest.mark.parametrize("schedule", ["joint", "temperature"])
def test_folders_that_take_turns(folders, schedule, tmp_path):
    """The run stops within the second epoch, which is of the second folder."""
    flags = [*SYSTEMS["dual"], *LINES, *SCHEDULES[schedule]]
    check_resumed(folders, tmp_path, flags, 14, 7)


@pytest.mark.parametrize("system", ["multiway", "routed"])
def test_other_systems_resume_as_well(system, data, tmp_path):
    flags = [*SYSTEMS[system], *LINES, "--synthetic-sources", "sampling"]
    check_resumed(data, tmp_path, flags, 7, 3)


def test_a_threshold_of_the_loss_survives_resuming(data, tmp_path):
    """Streams wait for a validation, join at the next epoch, and the resumed run knows it."""
    flags = [*SYSTEMS["dual"], *LINES, "--synthetic-after-loss", 99]
    after = ["--validate-interval-updates", 3]
    records = check_resumed(data, tmp_path, flags, 14, 3, after)
    inner = [record for record in records if "loss" in record]
    has_lines = ["xx-yy@mono_loss" in record for record in inner]
    # 5 updates in the first epoch, of which none is synthetic although the third was validated
    assert True not in has_lines[:5] and True in has_lines[5:]
    never = train(data, tmp_path / "never", 14, *flags[:-1], 0.001, *after)
    assert not any("xx-yy@mono_loss" in record for record in never)


def test_streams_join_at_their_update(data, tmp_path):
    flags = [*SYSTEMS["dual"], *LINES, "--join-at", "xx-yy@mono=3,yy-xx@mono=7"]
    records = check_resumed(data, tmp_path, flags, 12, 5)
    first = {
        stream: next(
            number for number, record in enumerate(records, 1) if f"{stream}_loss" in record
        )
        for stream in ("xx-yy@mono", "yy-xx@mono")
    }
    assert first["xx-yy@mono"] > 3 and first["yy-xx@mono"] > 7


def test_validation_and_inference_are_as_before(data, tmp_path):
    """The pairs alone are validated, and the checkpoint asks for no lines."""
    folder = shutil.copytree(data, tmp_path / "data")
    flags = [*SYSTEMS["dual"], *LINES, "--validate-interval", 1, "--synthetic-tag", "--eval-bleu"]
    flags += ["--eval-bleu-args", '{"beam": 1, "max_len_b": 5}', "--max-epoch", 1]
    flags += ["--best-checkpoint-metric", "yy-xx_bleu", "--maximize-best-checkpoint-metric"]
    records = train(folder, tmp_path / "run", 0, *flags)
    (valid,) = [record for record in records if "valid_loss" in record]
    assert not any("@" in name for name in valid) and "valid_yy-xx_bleu" in valid
    best = tmp_path / "run" / "checkpoint_best.pt"
    assert stored(best)["cfg"]["model"]["lang_pairs"] == "xx-yy,yy-xx"
    for file in folder.glob("train.*-None.*"):
        file.unlink()
    output = inprocess.generate(
        folder,
        *["--task", "dual_translation", "-s", "yy", "-t", "xx", "--gen-subset", "valid"],
        *["--path", best, "--beam", 2, "--max-len-b", 6],
    )
    assert len(inprocess.hypotheses(output)) == 30
    # the options of the training may be named again
    words = [folder, "--task", "dual_translation", "--path", best, "--batch-size", 30]
    (validated,) = inprocess.validate(*words, "--lang-pairs", "xx-yy")
    assert not any("@" in name for name in validated)
    assert validated["valid_loss"] == pytest.approx(valid["valid_loss"], abs=2e-3)
    assert {"valid_xx-yy_loss", "valid_yy-xx_loss"} <= set(validated)


def test_the_average_that_translates_is_not_validated(data, tmp_path):
    flags = [*SYSTEMS["dual"], *LINES, "--synthetic-share", 0.1]
    flags += ["--join-at", "xx-yy@mono=4,yy-xx@mono=4", "--validate-interval-updates", 4]
    average = ["--store-ema", "--ema-decay", 0.99, "--synthetic-ema"]
    plain, averaged = (
        train(data, tmp_path / str(len(more)), 6, *flags, *more) for more in ([], average)
    )
    losses = [
        [record["valid_loss"] for record in records if "valid_loss" in record]
        for records in (plain, averaged)
    ]
    # the same parameters up to the first line
    assert losses[0][0] == losses[1][0] and len(losses[0]) == len(losses[1]) > 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "flags",
    [
        pytest.param(["--schedule", "cycle", "--synthetic-sources", "sampling"], id="cycle"),
        pytest.param(["--synthetic-sources", "noised_beam"], id="joint"),
    ],
)
def test_two_workers_are_one_worker_with_twice_the_batches(flags, run, user_dir, data, tmp_path):
    """Each line is translated as the other number of workers does, words drawn at random too."""
    common = [data, *DUAL, "--lang-pairs", "xx-yy", *LINES, "--criterion", "cross_entropy"]
    runs = Runs(run, user_dir, tmp_path, *common)
    folders = [runs(workers, [*flags, "--batch-size", 4]) for workers in (1, 2)]
    assert largest_difference(*map(parameters, folders)) < 1e-5
    assert largest_difference(parameters(folders[0]), after_update(folders[0], 4)) > 1e-3


def test_bfloat16(data, tmp_path):
    for precision in ("--bf16", "--amp"):
        records = train(data, tmp_path / precision, 4, *SYSTEMS["dual"], *LINES, precision)
        assert any("xx-yy@mono_loss" in record for record in records)
