"""A training step of every system, and where one asks for values of the device.

For test_no_wait.py, which counts on the CPU what asks, and test_gpu.py, where one waits.
"""

import os
import shutil
import traceback
from pathlib import Path

import fairseq
import torch
from common import inprocess
from fairseq import options, tasks

STOCK = str(Path(fairseq.__file__).parent) + os.sep
TORCH = str(Path(torch.__file__).parent) + os.sep
# its search asks whether all translations have ended
LENGTHS = "compat/generation/source_columns.py"  # asks for lengths in the place of fairseq's LSTM
GREEDY = str(Path("fairseq_ext") / "common" / "greedy_search.py")

TRANSFORMER = ("--arch", "dual_transformer_tiny", "--criterion")
LINES = ("--monolingual", "yy", "--synthetic-sources", "sampling", "--synthetic-tag")
TWIN = ("--task", "translation", "-s", "xx", "-t", "yy", "--criterion", "twin")
SYSTEMS = {
    "dual": ("--task", "dual_translation", "-s", "xx", "-t", "yy", *TRANSFORMER)
    + ("chunked_label_smoothed_cross_entropy", "--label-smoothing", 0.1),
    "dual, three languages": ("--task", "dual_translation", "--lang-pairs", "xx-yy,yy-zz")
    + (*TRANSFORMER, "chunked_label_smoothed_cross_entropy"),
    "two stacks": ("--task", "dual_translation", "-s", "xx", "-t", "yy", "--arch")
    + ("dual_supervised_transformer", "--criterion", "dual_supervised", "--dsl-weight", 0),
    "tagged, with lines": ("--task", "dual_translation", "-s", "xx", "-t", "yy", "--arch")
    + ("tagged_transformer", "--criterion", "cross_entropy", *LINES),
    "duo": ("--task", "translation", "-s", "xx", "-t", "yy", "--arch", "duo_transformer_tiny")
    + ("--criterion", "chunked_label_smoothed_cross_entropy"),
    "twin lstm": (*TWIN, "--arch", "twin_lstm", "--twin-weight", 0.5),
    "twin transformer": (*TWIN, "--arch", "twin_transformer", "--twin-weight", 0.5),
    "twin noise": (*TWIN, "--arch", "twin_lstm", "--twin-target", "noise"),
    "twin norm": (*TWIN, "--arch", "twin_lstm", "--twin-stabilise"),
    "multiway": ("--task", "multiway_translation", "--lang-pairs", "xx-yy,yy-zz")
    + ("--arch", "multiway_gru_tiny", "--criterion", "cross_entropy"),
    "dual, with lines": ("--task", "dual_translation", "-s", "xx", "-t", "yy", *TRANSFORMER)
    + ("chunked_label_smoothed_cross_entropy", *LINES),
    "multiway, with lines": ("--task", "multiway_translation", "--lang-pairs", "xx-yy,yy-xx")
    + ("--arch", "multiway_gru_tiny", "--criterion", "cross_entropy", *LINES),
    "routed, with lines": ("--task", "routed_mtl", "--lang-pairs", "xx-yy,yy-xx")
    + ("--main-pair", "xx-yy", "--arch", "routed_gru_tiny", "--criterion", "cross_entropy", *LINES),
    "routed": ("--task", "routed_mtl", "--lang-pairs", "xx-yy,xx-zz", "--main-pair", "xx-yy")
    + ("--arch", "routed_gru_tiny", "--criterion", "cross_entropy"),
}


def with_lines(toy_corpus, folder):
    """Return a copy of the toy corpus, the yy side of its pairs as monolingual text too."""
    folder = shutil.copytree(toy_corpus.three, folder)
    for end in ("bin", "idx"):
        shutil.copy(folder / f"train.xx-yy.yy.{end}", folder / f"train.yy-None.yy.{end}")
    return folder


def has_lines(name):
    """True if a system of this name translates lines of monolingual text."""
    return "--monolingual" in SYSTEMS[name]


class Plain:
    """The part of an optimiser that a step needs."""

    def backward(self, loss):
        loss.backward()


class Step:
    """A training step on the first batch that the words of fairseq-train give.

    words: the data first. of_lines: take a batch of monolingual text.
    """

    def __init__(self, words, of_lines=False):
        words = [*words, "--optimizer", "adam", "--batch-size", 8]
        cfg = inprocess.configuration(options.get_training_parser(), words)
        torch.manual_seed(1)
        self.task = tasks.setup_task(cfg.task)
        self.model = self.task.build_model(cfg.model)
        self.criterion = self.task.build_criterion(cfg.criterion)
        self.task.load_dataset("train")
        dataset = self.task.dataset("train")
        batches = self.task.get_batch_iterator(dataset, max_sentences=8)
        samples = batches.next_epoch_itr(shuffle=False)
        self.sample = next(
            sample for sample in samples if of_lines == any("@" in str(part) for part in sample)
        )

    def __call__(self):
        """Run it and return (loss, sample size, what is logged)."""
        return self.task.train_step(self.sample, self.model, self.criterion, Plain(), 1)


def asking_line(helpers=()):
    """Return (file, line) of the code that asks for a value now; None if it is stock fairseq's.

    helpers: names of functions of the test itself.
    """
    frames = [frame for frame in traceback.extract_stack() if not frame.filename.startswith(TORCH)]
    helpers = {"asking_line", *helpers}
    asking = next(frame for frame in reversed(frames) if frame.name not in helpers)
    is_stock = asking.filename.startswith(STOCK) or asking.filename.endswith(LENGTHS)
    return None if is_stock else (asking.filename, asking.lineno)


def is_of_search(file):
    """True if the file is the search that may ask."""
    return file.endswith(GREEDY)
