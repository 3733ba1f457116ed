"""The configuration of a whole run, and the values that a run writes into its checkpoints.

fairseq stores a run's configuration in its checkpoints. It hands a builder of a model or criterion
either that group of the configuration or a merged copy of it, whose parent is the whole run.
"""

from argparse import Namespace
from typing import Any, Mapping, Optional

from omegaconf import DictConfig, open_dict


def whole_run(cfg: Any) -> Optional[DictConfig]:
    """Return the configuration of the run that ``cfg`` is a group of, or None without a run."""
    # a dataclass that a test or a program has made has no parent
    return cfg._get_parent() if isinstance(cfg, DictConfig) else None


def carry_in_checkpoints(cfg: Any, group: str, values: Mapping[str, Any]) -> None:
    """Let the run's checkpoints hold these options, whatever the user has given.

    What is built from a checkpoint reads them there. No later step of the same run should: it is
    told by arguments. Without a run there are no checkpoints, and nothing is written. A model of
    fairseq without a dataclass has its options in a Namespace, which checkpoints hold as it is.

    Args:
        cfg: what the builder was given.
        group: the group of the configuration that has the options, "model" or "criterion".
        values: {name of the option: value}.
    """
    if isinstance(cfg, Namespace):
        vars(cfg).update(values)
        return
    run = whole_run(cfg)
    if run is not None:
        # the original: checkpoints do not hold the builder's copy
        with open_dict(run[group]):
            run[group].update(values)
