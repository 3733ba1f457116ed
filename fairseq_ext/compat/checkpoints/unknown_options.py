"""Options in a checkpoint that the tasks and models of today do not have."""

from __future__ import annotations

import functools
import logging
from typing import Any, Mapping

from ..patch_registry import PatchedModule, patch
from ..surrounded_calls import call_before

logger = logging.getLogger(__name__)

STORED = "fairseq_ext_stored"  # a flag of omegaconf, which what is inside inherits


@patch(
    "fairseq.checkpoint_utils",
    because="fairseq 0.12.2 and its main branch: see the next patch",
)
def configurations_are_marked_as_stored(module: PatchedModule) -> None:
    """Mark the configuration that a checkpoint holds as one that its reader did not write."""
    stock = module.load_checkpoint_to_cpu

    @functools.wraps(stock)
    def load_checkpoint_to_cpu(*args: Any, **kwargs: Any) -> dict[str, Any]:
        state: dict[str, Any] = stock(*args, **kwargs)
        if hasattr(state.get("cfg"), "_set_flag"):
            state["cfg"]._set_flag(STORED, True)
        return state

    module.load_checkpoint_to_cpu = load_checkpoint_to_cpu


@patch(
    "fairseq.tasks",
    because="fairseq 0.12.2 refuses a checkpoint whose task had an option that it does not know, "
    "such as xlsr_53_56k.pt, those of the main branch and those of earlier versions of a plugin: "
    "\"Key 'eval_wer' not in 'AudioPretrainingConfig'\"",
)
def tasks_of_checkpoints_are_set_up(module: PatchedModule) -> None:
    """Leave out what the dataclass of the task does not have."""

    def check(cfg: Any, *args: Any, **kwargs: Any) -> None:
        leave_out_unknown(cfg, module.TASK_DATACLASS_REGISTRY)

    call_before(module, "setup_task", check)


@patch(
    "fairseq.models",
    because="fairseq 0.12.2 does the same for the model that another one begins with, such as "
    "that of HuBERT when it is fine-tuned, and for tasks of plugins for 0.10",
)
def models_of_checkpoints_are_built(module: PatchedModule) -> None:
    """Leave out what the dataclass of the model does not have."""

    def check(cfg: Any, *args: Any, **kwargs: Any) -> None:
        leave_out_unknown(cfg, module.MODEL_DATACLASS_REGISTRY)

    call_before(module, "build_model", check)


def leave_out_unknown(cfg: Any, dataclasses: Mapping[str, Any]) -> None:
    """Remove the options of a stored configuration that its dataclass lacks, and name them.

    What the caller writes, in a configuration of hydra for example, stays: fairseq refuses it.

    Args:
        cfg: the configuration of a task or a model, with the name of it as `_name`.
        dataclasses: {name: dataclass of the options}.
    """
    from omegaconf import DictConfig, open_dict

    if not isinstance(cfg, DictConfig) or not cfg._get_flag(STORED):
        return
    declaration = dataclasses.get(cfg.get("_name"))
    fields = getattr(declaration, "__dataclass_fields__", None)
    unknown = [str(name) for name in cfg if name not in fields] if fields else []
    told = [f"{name} = {cfg[name]!r}" for name in unknown if _is_set(cfg, name)]
    with open_dict(cfg):
        for name in unknown:
            del cfg[name]
    if told:
        logger.warning(
            "the checkpoint has options that %s does not have; they are left out: %s",
            declaration.__name__,  # type: ignore[union-attr]
            ", ".join(told),
        )


def _is_set(cfg: Any, name: str) -> bool:
    """Return True if an option is a text, a number or True."""
    from omegaconf import OmegaConf

    if OmegaConf.is_missing(cfg, name) or OmegaConf.is_interpolation(cfg, name):
        return False
    return isinstance(cfg[name], (str, int, float)) and bool(cfg[name])
