"""Short trainings on synthetic pairs: the tasks, their options, a data folder, a first batch."""

import torch
from common import inprocess
from fairseq import options, tasks
from fairseq.criterions import build_criterion
from streams.folders import random_lines, write_lines, write_pair

OTHERS = ["--optimizer", "adam", "--lr", 0.01, "--criterion", "cross_entropy", "--seed", 3]
OTHERS += ["--batch-size", 6, "--num-workers", 0, "--no-progress-bar", "--log-interval", 1]
DUAL = ["--task", "dual_translation", "--arch", "dual_transformer_tiny", "--embed-dim", 16]
DUAL += ["--ffn-embed-dim", 24, "--attention-heads", 2, "--layers", 1]
TAGGED = ["--task", "dual_translation", "--arch", "tagged_transformer"]
for _side in ("encoder", "decoder"):
    TAGGED += [f"--{_side}-embed-dim", 16, f"--{_side}-ffn-embed-dim", 24]
    TAGGED += [f"--{_side}-layers", 1, f"--{_side}-attention-heads", 2]
MULTIWAY = ["--task", "multiway_translation", "--arch", "multiway_gru_tiny", "--embed-dim", 10]
MULTIWAY += ["--hidden-size", 12, "--context-size", 10]
ROUTED = ["--task", "routed_mtl", "--arch", "routed_gru_tiny", "--main-pair", "xx-yy"]
ROUTED += ["--embed-dim", 10, "--hidden-size", 8, "--attention-size", 8]
SYSTEMS = {
    "dual": [*DUAL, "--lang-pairs", "xx-yy"],
    "tagged": [*TAGGED, "--lang-pairs", "xx-yy"],
    "multiway": [*MULTIWAY, "--lang-pairs", "xx-yy,yy-xx"],
    "routed": [*ROUTED, "--lang-pairs", "xx-yy,yy-xx,xx-zz"],
}
STOPS = ["--disable-validation"]


def write_data(folder, joined=()):
    """xx-yy and xx-zz, and monolingual text of xx and yy with an empty and a long line.

    joined: the languages whose words every dictionary has, instead of its own.
    """
    for split in ("train", "valid"):
        for pair in ("xx-yy", "xx-zz"):
            lines = {lang: random_lines(lang, 30) for lang in pair.split("-")}
            write_pair(folder, split, pair, joined, **lines)
    for lang in ("xx", "yy"):
        lines = random_lines(lang, 40, seed=5)
        write_lines(folder, "train", lang, ["", *lines, " ".join(lines[:9])], joined)
    return folder


def train(data, save_dir, updates, *flags):
    """Records of the log of a run."""
    stop = ["--max-update", updates, "--save-dir", save_dir]
    if "--validate-interval-updates" not in flags and "--validate-interval" not in flags:
        stop += STOPS
    return inprocess.train(data, *OTHERS, *stop, *flags)


class Run:
    """Task, model and criterion of a run, and the batches of its epochs.

    Args:
        data: the folder.
        flags: of fairseq-train.
    """

    def __init__(self, data, *flags):
        words = [data, *OTHERS, *flags]
        self.cfg = inprocess.configuration(options.get_training_parser(), words)
        torch.manual_seed(1)
        self.task = tasks.setup_task(self.cfg.task)
        self.model = self.task.build_model(self.cfg.model)
        self.criterion = build_criterion(self.cfg.criterion, self.task)
        self.task.load_dataset("train", combine=True)
        size = self.cfg.dataset.batch_size
        dataset = self.task.dataset("train")
        self.iterator = self.task.get_batch_iterator(
            dataset, max_sentences=size, seed=3, max_positions=self.task.max_positions()
        )

    def batches(self):
        """The samples of the next epoch."""
        return list(self.iterator.next_epoch_itr())

    def synthetic(self, stream):
        """The first batch with lines for a stream."""
        return next(batch for batch in self.batches() if stream in batch)
