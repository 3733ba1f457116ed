"""Files that torch can read and that are no checkpoints of fairseq."""

import re

import pytest

from fairseq_ext.compat.checkpoints.stored_entries import check_entries
from fairseq_ext.compat.data.data_files import UnreadableFile

TODAY = {
    "model": {},
    "extra_state": {"train_iterator": {}},
    "optimizer_history": [{"lr_scheduler_state": {}}],
}
# before fairseq 0.6: one optimiser, and the position outside of extra_state
OLD = {"model": {}, "optimizer": {}, "best_loss": 1.0, "epoch": 1, "batch_offset": 0, "val_loss": 2}


@pytest.mark.parametrize("state", [TODAY, OLD, {**TODAY, "extra_state": {}}])
def test_checkpoints_of_every_version_pass(state):
    check_entries("a.pt", state)


@pytest.mark.parametrize(
    ("state", "lacking"),
    [
        ([1, 2], "it has no parameters"),
        ({"model": [1]}, "it has no parameters"),
        ({"model": {}}, "it has no optimizer_history, no extra_state"),
        ({"model": {}, "optimizer_history": [{}], "epoch": 1}, "it has no batch_offset"),
        (
            {name: value for name, value in OLD.items() if name not in ("optimizer", "val_loss")},
            "it has no optimizer, no val_loss",
        ),
        ({**TODAY, "extra_state": 7}, r"its extra_state is '7' \(int\), which must be a mapping"),
        ({**TODAY, "optimizer_history": {"a": 1}}, "its optimizer_history .* must be a list"),
        ({**TODAY, "optimizer_history": [3]}, "optimizer_history ends with '3'"),
        ({**TODAY, "extra_state": {"train_iterator": 5}}, "train_iterator in its extra_state"),
    ],
)
def test_what_is_missing_or_of_another_form_is_named(state, lacking):
    with pytest.raises(UnreadableFile, match=f"a.pt: not a checkpoint of fairseq: .*{lacking}"):
        check_entries("a.pt", state)


def test_long_values_are_cut():
    with pytest.raises(UnreadableFile) as caught:
        check_entries("a.pt", {**TODAY, "extra_state": "x" * 1000})
    assert re.search(r"'x{40}' \(str\)", str(caught.value))
