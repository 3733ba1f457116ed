"""Trainers and programs for fairseq 0.10: options in one Namespace, and their checkpoints."""

import argparse
import copy
import pickle

import pytest
import torch
from common import inprocess
from fairseq import checkpoint_utils
from fairseq.logging import metrics
from fairseq.trainer import Trainer
from omegaconf import OmegaConf
from options.systems import SYSTEMS, built


@pytest.fixture
def trainer(toy_corpus):
    words = ("--cpu", "--max-epoch", "7", "--lr", "0.5")
    cfg, task, model = built(SYSTEMS["transformer"], toy_corpus.two, *words)
    return Trainer(cfg, task, model, task.build_criterion(cfg.criterion))


def test_options_of_a_run_are_in_one_namespace(trainer):
    args = trainer.args
    assert (args.max_epoch, args.lr, args.optimizer) == (7, [0.5], trainer.cfg.optimizer._name)
    assert (args.task, args.source_lang) == (trainer.cfg.task._name, "xx")
    assert getattr(args, "typo", None) is None and "max_epoch" in args
    trainer.cfg.optimization.max_epoch = 9
    assert args.max_epoch == 9
    with pytest.raises(AttributeError, match="args.max_epoch of a trainer would change nothing"):
        args.max_epoch = 3
    for copied in (copy.copy(args), copy.deepcopy(args), pickle.loads(pickle.dumps(args))):
        assert type(copied) is argparse.Namespace and copied.max_epoch == 9
        assert len(vars(copied)) > 200


def test_a_trainer_may_have_its_own(trainer):
    trainer.args = argparse.Namespace(max_epoch=1)
    assert trainer.args.max_epoch == 1


def save_as_in_0_10(self, filename, extra_state):
    extra_state["metrics"] = metrics.state_dict()
    checkpoint_utils.save_state(
        filename,
        self.options_to_store,
        self.model.state_dict(),
        self.criterion,
        self.optimizer,
        self.lr_scheduler,
        self.get_num_updates(),
        self._optim_history,
        extra_state,
    )


@pytest.mark.parametrize("options", ["args", "cfg"])
def test_a_training_goes_on_from_what_such_a_trainer_wrote(
    options, tiny_training, tmp_path, monkeypatch
):
    flags = (*tiny_training, "--disable-validation")
    inprocess.train(*flags, "--save-dir", tmp_path / "whole", "--max-update", 4)
    with monkeypatch.context() as patched:
        patched.setattr(Trainer, "save_checkpoint", save_as_in_0_10)
        place = property(lambda self: getattr(self, options))
        patched.setattr(Trainer, "options_to_store", place, raising=False)
        inprocess.train(*flags, "--save-dir", tmp_path / "parts", "--max-update", 2)
    written = checkpoint_utils.torch.load(tmp_path / "parts/checkpoint_last.pt", weights_only=True)
    assert [entry["num_updates"] for entry in written["optimizer_history"]] == [2]
    assert not any(tensor.is_cuda for tensor in written["model"].values())
    inprocess.train(*flags, "--save-dir", tmp_path / "parts", "--max-update", 4)
    states = [
        checkpoint_utils.load_checkpoint_to_cpu(str(tmp_path / name / "checkpoint_last.pt"))
        for name in ("whole", "parts")
    ]
    whole, parts = (state["model"] for state in states)
    names = [name for name in whole if not name.endswith("_float_tensor")]  # never set
    assert names and all(torch.equal(whole[name], parts[name]) for name in names)


def test_the_optimizer_may_be_left_out(trainer, tmp_path):
    path = str(tmp_path / "checkpoint.pt")
    parts = ({}, trainer.criterion, trainer.optimizer, trainer.lr_scheduler, 3)
    for options in (
        argparse.Namespace(no_save_optimizer_state=True),
        OmegaConf.create({"checkpoint": {"no_save_optimizer_state": True}}),
    ):
        checkpoint_utils.save_state(path, options, *parts)
        assert "last_optimizer_state" not in checkpoint_utils.torch.load(path, weights_only=True)


PROGRAM = """
import sys
from pathlib import Path
from fairseq import checkpoint_utils, distributed_utils, options, tasks
from fairseq.trainer import Trainer

def main(args, folder):
    task = tasks.setup_task(args)
    model, criterion = task.build_model(args), task.build_criterion(args)
    trainer = Trainer(args, task, model, criterion)
    _, epoch_itr = checkpoint_utils.load_checkpoint(args, trainer)
    batches = epoch_itr.next_epoch_itr(shuffle=False)
    trainer.begin_epoch(1)
    while trainer.get_lr() > args.min_lr and trainer.get_num_updates() < 2:
        trainer.train_step([next(batches)])
    words = (args.distributed_rank, args.device_id, args.distributed_world_size, len(batches))
    Path(folder, str(args.distributed_rank)).write_text(" ".join(map(str, words)))

if __name__ == "__main__":
    folder, *words = sys.argv[1:]
    args = options.parse_args_and_arch(options.get_training_parser(), words)
    distributed_utils.call_main(args, main, folder=folder)
"""


@pytest.mark.parametrize("workers", [1, 2])
def test_programs_call_their_main_function(workers, tiny_training, tmp_path, run):
    """A changed copy of train.py of fairseq 0.10, in one process and in two."""
    program = tmp_path / "train.py"
    program.write_text(PROGRAM)
    words = [*tiny_training, "--cpu", "--distributed-world-size", workers, "--no-save"]
    words += ["--batch-size", 30, "--ddp-backend", "legacy_ddp"]
    run("python", program, tmp_path, *words, fresh=True)
    notes = [(tmp_path / str(rank)).read_text().split() for rank in range(workers)]
    assert [note[:3] for note in notes] == [
        [str(rank), str(rank), str(workers)] for rank in range(workers)
    ]
    # each worker has its part of the epoch
    assert len({note[3] for note in notes}) == 1
    assert not (tmp_path / str(workers)).exists()
