"""Architectures of fairseq: named ones, with default values of their own, and what none has."""

from argparse import Namespace
from typing import Any

from fairseq.models import MODEL_DATACLASS_REGISTRY, register_model_architecture
from omegaconf import MISSING, DictConfig, OmegaConf


def architecture(model: str, name: str, **values: Any) -> None:
    """Register ``model`` under ``name``; ``values`` are the defaults of its options."""

    def set_defaults(args: Namespace) -> None:
        for option, value in values.items():
            if not hasattr(args, option):
                setattr(args, option, value)
        if isinstance(args, DictConfig):
            add_newer_options(args, model)

    register_model_architecture(model, name)(set_defaults)


def add_newer_options(cfg: DictConfig, model: str) -> None:
    """Give ``cfg``, of a checkpoint, the default of each option of ``model`` that is newer than it.

    fairseq does so only where a checkpoint names the model itself, not one of its architectures.
    """
    if model not in MODEL_DATACLASS_REGISTRY:
        return
    declared = OmegaConf.structured(MODEL_DATACLASS_REGISTRY[model]())
    for option, value in OmegaConf.to_container(declared, resolve=False).items():
        if value != MISSING and option not in cfg:
            cfg[option] = value


def refuse_adaptive_softmax(args: Namespace) -> None:
    """Raise ValueError for --adaptive-softmax-cutoff: such a model of fairseq gives no logits."""
    cutoff = getattr(args, "adaptive_softmax_cutoff", None)
    if cutoff:
        raise ValueError(f"--adaptive-softmax-cutoff {cutoff}: allowed: leave it out")
