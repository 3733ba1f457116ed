"""Curves of training logs in both formats, of resumed runs, and of damaged logs."""

import json

import pytest

from fairseq_ext.tools import UsageError
from fairseq_ext.tools.curves.training_log import parse_line, read_run

STAMP = "2030-01-02 03:04:05 | INFO | {} | "

NOISE = [
    "{'_name': None, 'common': {'seed': 1}}",
    "TransformerModel(",
    "  (encoder): TransformerEncoderBase(",
    'begin validation on "valid" subset',
    "end of epoch 1 (average epoch stats below)",
    "done training in 1.4 seconds",
]

# (updates, loss) of the log that both formats below write
INNER = [(10, 5.0), (20, 3.5)]

VALID = [(20, 3.0)]


def simple_lines(stamp):
    """The numbers above as --log-format simple, for stdout (stamp) or a --log-file."""
    prefix = STAMP.format if stamp else lambda name: ""
    inner = [
        prefix("train_inner")
        + f"epoch 001: {updates:6d} / 20 loss={loss}, a-b_loss={loss - 1}, ppl=9.5, "
        f"wps=100, num_updates={updates}, lr=0.25, train_wall=0, wall=4"
        for updates, loss in INNER
    ]
    valid = [
        prefix("valid") + f"epoch 001 | valid on 'valid' subset | loss {loss} | "
        f"a-b_loss {loss - 1} | a-b_bleu 12.5 | num_updates {updates} | best_loss None"
        for updates, loss in VALID
    ]
    train = [prefix("train") + "epoch 001 | loss 4.2 | gnorm 0.5 | num_updates 20 | wall 6"]
    return [*NOISE, *inner, *valid, *train]


def json_lines(stamp):
    """The same numbers as --log-format json."""
    prefix = STAMP.format if stamp else lambda name: ""

    def text(values, split=""):
        record = {split + name: str(value) for name, value in values.items()}
        return json.dumps({"epoch": 1, **({} if split else {"update": 0.5}), **record})

    inner = [
        prefix("train_inner")
        + text({"loss": loss, "a-b_loss": loss - 1, "ppl": 9.5, "num_updates": updates})
        for updates, loss in INNER
    ]
    valid = [
        prefix("valid")
        + text(
            {"loss": loss, "a-b_loss": loss - 1, "a-b_bleu": 12.5, "num_updates": updates},
            "valid_",
        )
        for updates, loss in VALID
    ]
    train = [prefix("train") + text({"loss": 4.2, "gnorm": 0.5, "num_updates": 20}, "train_")]
    return [*NOISE, *inner, *valid, *train]


def write(path, lines):
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path


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


def test_a_resumed_run_replaces_the_updates_it_repeats(tmp_path):
    lines = [f"epoch 001: {n} / 99 loss={n}, num_updates={n}" for n in (10, 20, 30)]
    lines += [f"epoch 001: {n} / 99 loss={n + 0.5}, num_updates={n}" for n in (20, 30, 40)]
    run = read_run(write(tmp_path / "run.log", lines), "run")
    assert run.curves["train", "loss"] == [(10, 10), (20, 20.5), (30, 30.5), (40, 40.5)]


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
