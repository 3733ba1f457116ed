"""Options that fairseq-validate does not read."""

import pytest
from common import inprocess

from fairseq_ext.compat.user_errors import OptionError


@pytest.fixture
def words(tiny_training, tmp_path):
    """The words of fairseq-validate for a checkpoint of one update."""
    inprocess.train(*tiny_training, "--max-update", 1, "--save-dir", tmp_path)
    return [
        tiny_training[0],
        "--task",
        "translation",
        "--path",
        tmp_path / "checkpoint_last.pt",
        "--batch-size",
        8,
    ]


def test_unread_options_are_refused(words):
    options = ["--max-valid-steps 1", "--combine-valid-subsets", "--criterion cross_entropy"]
    for option in [*options, "--num-shards 2", "--gen-subset test"]:
        with pytest.raises(OptionError, match=f"^{option}: fairseq-validate .*; allowed: "):
            inprocess.validate(*words, *option.split())
    asked = "--criterion", "label_smoothed_cross_entropy", "--label-smoothing"
    first, second = (inprocess.validate(*words, *asked, size)[-1] for size in (0.0, 0.5))
    assert first["valid_loss"] == first["valid_nll_loss"] == second["valid_nll_loss"]
    assert second["valid_loss"] != first["valid_loss"]


def test_the_precision_is_named(words, caplog):
    inprocess.validate(*words, "--bf16")
    assert "--bf16: fairseq-validate computes in single precision" in caplog.text
