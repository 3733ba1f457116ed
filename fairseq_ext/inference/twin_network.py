"""The backward network of a checkpoint that was trained with a twin."""

from typing import Any, Dict, Optional

from fairseq.tasks import FairseqTask
from omegaconf import DictConfig

from ..compat.checkpoints.configurations import chosen_name
from ..twin.criterion import TwinCriterion


def load_twin(cfg: DictConfig, state: Dict[str, Any], task: FairseqTask) -> Optional[TwinCriterion]:
    """Return the criterion with the backward network; None for a checkpoint without one.

    Args:
        cfg: the configuration of the run.
        state: the checkpoint.
        task: of the run, for inference.
    """
    parameters = state.get("criterion") or {}
    name = chosen_name(cfg.get("criterion"), "criterion")
    # the penalties without a backward network have no parameters of one
    if name != "twin" or not any(key.startswith("network.") for key in parameters):
        return None
    return TwinCriterion.of_checkpoint(cfg.criterion, parameters, task)
