"""Architectures of fairseq: named ones, with default values of their own, and what none has."""

from argparse import Namespace
from typing import Any

from fairseq.models import register_model_architecture


def architecture(model: str, name: str, **values: Any) -> None:
    """Register ``model`` under ``name``; ``values`` are the defaults of its options."""

    def set_defaults(args: Namespace) -> None:
        for option, value in values.items():
            if not hasattr(args, option):
                setattr(args, option, value)

    register_model_architecture(model, name)(set_defaults)


def refuse_adaptive_softmax(args: Namespace) -> None:
    """Raise ValueError for --adaptive-softmax-cutoff: such a model of fairseq gives no logits."""
    cutoff = getattr(args, "adaptive_softmax_cutoff", None)
    if cutoff:
        raise ValueError(f"--adaptive-softmax-cutoff {cutoff}: allowed: leave it out")
