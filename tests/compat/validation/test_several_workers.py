"""fairseq-validate and fairseq-eval-lm with several workers."""

import re
from argparse import Namespace

import pytest
from common import inprocess
from fairseq_cli import eval_lm
from omegaconf import OmegaConf

from fairseq_ext.compat.user_errors import OptionError


def test_validation_with_a_worker_that_has_no_last_batch(run, tiny_training, tmp_path):
    """24 sentences in 5 batches; what the workers log is larger than one message may be."""
    inprocess.train(*tiny_training, "--max-update", 1, "--save-dir", tmp_path)
    words = [tiny_training[0], "--task", "translation", "--path", tmp_path / "checkpoint_last.pt"]
    words += ["--cpu", "--num-workers", 0, "--batch-size", 5, "--log-format", "simple"]
    words += ["--all-gather-list-size", 2000]
    command = ["fairseq-validate", *words, "--distributed-world-size"]
    texts = [run(*command, workers) for workers in (1, 2)]
    logs = [re.findall(r"valid on 'valid' subset \| (loss .*) \| wps", text) for text in texts]
    assert logs[0] and set(logs[0]) == set(logs[1])


@pytest.mark.parametrize("option", ["output_word_probs", "output_word_stats"])
@pytest.mark.parametrize("is_namespace", [False, True])
def test_words_are_of_one_worker(option, is_namespace):
    printing = {"output_word_probs": False, "output_word_stats": False, option: True}
    workers = {"distributed_world_size": 2}
    cfg = OmegaConf.create({"distributed_training": workers, "eval_lm": printing})
    if is_namespace:  # as other programs call it
        cfg = Namespace(path="checkpoint.pt", **workers, **printing)
    message = f"--distributed-world-size 2 .* with --{option.replace('_', '-')}: .*; allowed: 1"
    with pytest.raises(OptionError, match=message):
        eval_lm.main(cfg)
