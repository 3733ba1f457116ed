"""Checkpoints whose tasks and models had options that those of today do not have."""

import logging
from dataclasses import dataclass, field

import pytest
import torch
from fairseq import checkpoint_utils, models, tasks
from fairseq.dataclass import FairseqDataclass
from fairseq.dataclass.utils import merge_with_parent
from fairseq.models import BaseFairseqModel
from omegaconf import OmegaConf
from omegaconf.errors import ConfigKeyError


@dataclass
class TaskOptions(FairseqDataclass):
    """Options of a task, and of the one in whose model it begins."""

    size: int = field(default=2, metadata={"help": "a size"})


class WidthTask(tasks.FairseqTask):
    """A task without data."""

    @classmethod
    def setup_task(cls, cfg):
        """Return the task."""
        return cls(cfg)

    def build_model(self, cfg):
        """Return the model, as a task for fairseq 0.10 builds it."""
        return models.build_model(cfg, self)


class WidthModel(BaseFairseqModel):
    """One number for each unit of the size."""

    def __init__(self, size):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(size))

    @classmethod
    def build_model(cls, cfg, task):
        """Return a model of this size."""
        return cls(cfg.size)


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    monkeypatch.setitem(tasks.TASK_REGISTRY, "width", WidthTask)
    monkeypatch.setitem(tasks.TASK_DATACLASS_REGISTRY, "width", TaskOptions)
    monkeypatch.setitem(models.MODEL_REGISTRY, "width", WidthModel)
    monkeypatch.setitem(models.MODEL_DATACLASS_REGISTRY, "width", TaskOptions)


@pytest.fixture
def checkpoint(tmp_path):
    """A checkpoint of a version of the plugin that had further options."""
    further = {"eval_wer": False, "multiple_files": None, "input_modality": "image"}
    options = {"_name": "width", "size": 3, **further}
    state = {"cfg": {"task": dict(options), "model": dict(options)}}
    state.update(args=None, model={"weight": torch.arange(3.0)}, last_optimizer_state=None)
    names = {"criterion_name": "CrossEntropyCriterion", "optimizer_name": "FairseqAdam"}
    state["optimizer_history"] = [{**names, "num_updates": 1, "lr_scheduler_state": {}}]
    state["extra_state"] = {"epoch": 1, "train_iterator": {"epoch": 1}, "val_loss": 0.0}
    torch.save(state, tmp_path / "checkpoint.pt")
    return str(tmp_path / "checkpoint.pt")


def test_a_checkpoint_is_loaded(checkpoint, caplog):
    with caplog.at_level(logging.WARNING):
        (model,), cfg, task = checkpoint_utils.load_model_ensemble_and_task([checkpoint])
    assert task.cfg.size == 3 and model.weight.tolist() == [0, 1, 2]
    text = "TaskOptions does not have; they are left out: input_modality = 'image'"
    assert [text in record.message for record in caplog.records].count(True) == 2
    assert "eval_wer" not in cfg.task and "multiple_files" not in caplog.text


def test_a_model_that_another_one_begins_with(checkpoint):
    """As fine-tuning does it: the configuration of the checkpoint is handed on."""
    stored = checkpoint_utils.load_checkpoint_to_cpu(checkpoint)["cfg"]
    task = tasks.setup_task(stored.task)
    assert len(task.build_model(stored.model).weight) == 3


def test_a_configuration_within_another_one(checkpoint):
    """A model that was fine-tuned holds that of the model which it began with, as w2v_args."""
    inner = checkpoint_utils.load_checkpoint_to_cpu(checkpoint)["cfg"]
    state = torch.load(checkpoint, weights_only=True)
    state["cfg"]["model"]["w2v_args"] = OmegaConf.to_container(inner)
    torch.save(state, checkpoint)
    outer = checkpoint_utils.load_checkpoint_to_cpu(checkpoint)["cfg"]
    merged = merge_with_parent(OmegaConf.create({"size": 2, "w2v_args": None}), outer.model, True)
    assert tasks.setup_task(merged.w2v_args.task).cfg.size == 3


def test_what_the_caller_writes_is_refused():
    cfg = OmegaConf.create({"_name": "width", "input_modality": "image"})
    for build in (tasks.setup_task, lambda cfg: models.build_model(cfg, None)):
        with pytest.raises(ConfigKeyError, match="input_modality"):
            build(cfg)


def test_values_that_cannot_be_read(tmp_path, checkpoint, caplog):
    """A reference to an option that is gone is left out, not resolved."""
    state = torch.load(checkpoint, weights_only=True)
    state["cfg"]["model"]["input_modality"] = "${task.nothing}"
    torch.save(state, tmp_path / "referring.pt")
    path = str(tmp_path / "referring.pt")
    (model,), _, _ = checkpoint_utils.load_model_ensemble_and_task([path])
    assert len(model.weight) == 3 and "nothing" not in caplog.text
