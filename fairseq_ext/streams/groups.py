"""Training a part of a model (--train-only)."""

import logging
from typing import List

from torch import nn

logger = logging.getLogger(__name__)


def train_only(model: nn.Module, text: str) -> List[str]:
    """Freeze all parameters but those of the groups named in ``text``, "shared,output".

    ``model.parameter_groups()`` gives {group: names of its parameters}; groups may overlap. A
    parameter that has several names is in a group when one of them is.

    Returns the names of the parameters that are trained, in the model's order. Raises ValueError
    for a model without groups, a group that it does not have, and groups without parameters.
    """
    if not hasattr(model, "parameter_groups"):
        raise ValueError(
            f"--train-only {text}: {type(model).__name__} does not divide its parameters into "
            "groups; only a model with parameter_groups() can train a part of itself"
        )
    groups = model.parameter_groups()
    by_name = dict(model.named_parameters(remove_duplicate=False))
    wanted = [name.strip() for name in text.split(",") if name.strip()]
    for group in wanted:
        if group not in groups:
            raise ValueError(f"--train-only {text}: {group!r} is none of {', '.join(groups)}")
    trained = {id(by_name[name]) for group in wanted for name in groups[group]}
    if not trained:
        raise ValueError(
            f"--train-only {text!r}: names no parameter; the groups are {', '.join(groups)}"
        )
    for parameter in model.parameters():
        parameter.requires_grad_(parameter.requires_grad and id(parameter) in trained)
    names = [name for name, parameter in model.named_parameters() if parameter.requires_grad]
    logger.info(f"--train-only {text}: {len(names)} of {len(by_name)} parameters are trained")
    return names
