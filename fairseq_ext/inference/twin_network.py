"""The backward network of a checkpoint that was trained with a twin."""

from typing import Any, Dict, Optional

from fairseq.dataclass.utils import merge_with_parent
from fairseq.tasks import FairseqTask
from omegaconf import DictConfig

from ..compat.checkpoints.configurations import chosen_name
from ..twin.config import TwinConfig
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
    options = merge_with_parent(TwinConfig(), cfg.criterion)
    criterion = TwinCriterion.of_run(options, task, is_stored=False)
    criterion.load_state_dict(parameters)
    return criterion.eval()
