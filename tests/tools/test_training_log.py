"""Curves of training logs in both formats, of resumed runs, and of damaged logs."""

import pytest
from tools.sample_logs import INNER, NOISE, VALID, json_lines, simple_lines
from tools.translations import write

from fairseq_ext.tools import UsageError
from fairseq_ext.tools.curves.training_log import parse_line, read_run


@pytest.mark.parametrize("stamp", [True, False], ids=["stdout", "log-file"])
@pytest.mark.parametrize("lines", [simple_lines, json_lines])
def test_both_formats_give_the_same_curves(tmp_path, lines, stamp):
    run = read_run(write(tmp_path / "run.log", lines(stamp)), "run")
    assert run.curves["train", "loss"] == INNER
    assert run.curves["valid", "loss"] == VALID
    assert run.curves["train", "a-b_loss"] == [(10, 4.0), (20, 2.5)]
    assert run.curves["valid", "a-b_bleu"] == [(20, 12.5)]
    # only the average of the epoch has this one
    assert run.curves["train", "gnorm"] == [(20, 0.5)]
    assert {split for split, _ in run.curves} == {"train", "valid"}


def test_a_second_validation_subset_is_a_curve_of_its_own():
    simple = "epoch 003 | valid on 'valid1' subset | loss 2.5 | num_updates 70"
    record = '{"epoch": 3, "valid1_loss": "2.5", "valid1_num_updates": "70"}'
    assert parse_line(simple) == parse_line(record) == ("valid1", 70, {"loss": 2.5})


VALIDATED = [
    "epoch 001: 5 / 10 loss=3, num_updates=5",
    "epoch 001 | valid on 'train' subset | loss 2 | wps 9 | wpb 4 | bsz 2 | num_updates 5",
    "epoch 001: 10 / 10 loss=2.5, num_updates=10",
    "epoch 001 | valid on 'train' subset | loss 1.5 | wps 9 | wpb 4 | bsz 2 | num_updates 10",
    "epoch 001 | loss 2.7 | wps 9 | ups 3 | num_updates 10 | gnorm 1 | train_wall 1 | wall 2",
]
VALIDATED_JSON = [
    '{"epoch": 1, "update": 0.5, "loss": "3", "num_updates": "5"}',
    '{"epoch": 1, "train_loss": "2", "train_wps": "9", "train_num_updates": "5"}',
    '{"epoch": 1, "update": 1, "loss": "2.5", "num_updates": "10"}',
    '{"epoch": 1, "train_loss": "1.5", "train_wps": "9", "train_num_updates": "10"}',
    '{"epoch": 1, "train_loss": "2.7", "train_wps": "9", "train_ups": "3", "train_num_updates": '
    '"10", "train_gnorm": "1", "train_wall": "2"}',
]


@pytest.mark.parametrize("log", [VALIDATED, VALIDATED_JSON], ids=["simple", "json"])
@pytest.mark.parametrize("interval", [True, False])
def test_the_training_set_may_be_validated(tmp_path, log, interval):
    """--valid-subset train: with dropout off, the losses are not those of the training."""
    # without lines while training, the averages of epochs stand for them
    lines = log if interval else [log[number] for number in (1, 3, 4)]
    run = read_run(write(tmp_path / "run.log", lines), "run")
    assert run.curves["train", "loss"] == ([(5, 3.0), (10, 2.5)] if interval else [(10, 2.7)])
    assert run.curves["train, validated", "loss"] == [(5, 2.0), (10, 1.5)]
    assert run.curves["train", "gnorm"] == [(10, 1.0)]


def test_a_resumed_run_replaces_the_updates_it_repeats(tmp_path):
    lines = [f"epoch 001: {n} / 99 loss={n}, num_updates={n}" for n in (10, 20, 30)]
    lines += [f"epoch 001: {n} / 99 loss={n + 0.5}, num_updates={n}" for n in (20, 30, 40)]
    run = read_run(write(tmp_path / "run.log", lines), "run")
    assert run.curves["train", "loss"] == [(10, 10), (20, 20.5), (30, 30.5), (40, 40.5)]


@pytest.mark.parametrize(
    "line, left",
    [
        ("Loaded checkpoint out/checkpoint_1_20.pt (epoch 2 @ 20 updates)", [(10, 1), (20, 2)]),
        ("No existing checkpoint found out/checkpoint_last.pt", []),
    ],
)
def test_what_a_run_no_longer_has_is_left_out(line, left, tmp_path):
    """Resumed from an older checkpoint, or begun anew, and stopped before its next validation."""
    valid = "epoch 001 | valid on 'valid' subset | loss {} | num_updates {}"
    lines = [valid.format(loss, 10 * loss) for loss in (1, 2, 3, 4)]
    lines += [f"2030-01-02 03:04:05 | INFO | fairseq.trainer | {line}"]
    lines += ["epoch 002: 25 / 99 loss=7, num_updates=25"]
    run = read_run(write(tmp_path / "run.log", lines), "run")
    assert run.curves.get(("valid", "loss"), []) == left
    assert run.curves["train", "loss"] == [(25, 7)]


@pytest.mark.parametrize(
    "damaged",
    [
        '{"epoch": 1, "update": 0.5, "loss": "3',
        "epoch 001: 5 / 20 loss=3.5, num_up",
        "epoch 001 | loss 3.5 | gnorm 2",
    ],
)
def test_damage_is_an_error_with_file_and_line_except_at_the_cut_off_end(tmp_path, damaged):
    good = simple_lines(True)
    path = write(tmp_path / "run.log", [*good, damaged])
    assert read_run(path, "run").curves["train", "loss"] == INNER
    write(path, [*good, damaged, good[-1]])
    with pytest.raises(UsageError) as error:
        read_run(path, "run")
    assert f"{path}, line {len(good) + 1}:" in str(error.value)


@pytest.mark.parametrize("start", ["Loaded checkpoint x.pt (epoch 1 @ 10 updates)",
                                   "No existing checkpoint found x.pt"])  # fmt: skip
@pytest.mark.parametrize("end", ["loss", "num_up", "r=0.25, train_w"])
def test_a_line_that_was_cut_off_before_a_new_start_is_left_out(tmp_path, capsys, start, end):
    """The next process goes on in the line, whose newline was not written."""
    good = simple_lines(True)
    *begun, numbers = good[: len(NOISE) + 2]  # the last of them is a line while training
    stamp = "2030-01-02 03:04:09 | INFO | fairseq.trainer | "
    half = numbers[: numbers.index(end) + len(end)]
    log = [*begun, half + stamp + "{'_name': None}", stamp + start, *good[len(NOISE) + 1 :]]
    path = write(tmp_path / "run.log", log)
    run = read_run(path, "run")
    assert run.curves["train", "loss"][-1] == INNER[-1]
    assert run.curves["valid", "loss"] == VALID
    warning = capsys.readouterr().err
    assert warning.startswith(f"warning: {path}, line {len(begun) + 1}: ")
    assert "cut off before a new start; it is left out" in warning
    write(path, [*log[: len(begun) + 1], *log[len(begun) + 2 :]])
    with pytest.raises(UsageError, match=rf"line {len(begun) + 1}: "):
        read_run(path, "run")


def test_a_clock_that_is_set_back_counts_as_none(tmp_path, capsys):
    times = ["02:50:00", "02:59:00", "02:05:00", "02:15:00"]  # summer time ends at 03:00
    lines = [
        f"2030-10-27 {time} | INFO | train_inner | epoch 001: 1 / 9 loss=1, num_updates={number}"
        for number, time in enumerate(times, 1)
    ]
    run = read_run(write(tmp_path / "run.log", lines), "run")
    assert run.times == [(1, 0.0), (2, 540.0), (3, 540.0), (4, 1140.0)]
    assert "run.log, line 3: the clock was set back by 3240 seconds" in capsys.readouterr().err


def test_a_value_that_is_no_number_is_left_out():
    values = '"train_bleu": null, "train_x": [1], "train_loss": "3", "train_num_updates": "7"'
    assert parse_line(f'{{"epoch": 1, {values}}}') == ("epoch", 7, {"loss": 3.0})


def test_lines_end_at_newlines_alone(tmp_path):
    """A translation that --eval-bleu-print-samples shows may hold other separators."""
    shown = "example hypothesis: a\u2028b\x1cc\x85 epoch 001 | loss 9 | num_updates 5"
    damaged = "epoch 001 | loss 3.5 | gnorm 2"
    path = write(tmp_path / "run.log", [shown, damaged, *simple_lines(False)])
    with pytest.raises(UsageError, match=r"run\.log, line 2: num_updates is missing"):
        read_run(path, "run")
    shown = "example hypothesis: a\u2028epoch 001 | loss 9 | num_updates 5"
    path = write(tmp_path / "run.log", [shown, *simple_lines(False)])
    assert read_run(path, "run").curves["train", "loss"] == INNER
