"""Training a part of a model (--train-only), and the pairs of which nothing is trained then."""

import logging
from typing import Dict, List, Sequence

from torch import nn

from ..common.named_values import entries
from .config import StreamsConfig
from .model import HasPairParameters, HasParameterGroups
from .schedule import parse_join_at

logger = logging.getLogger(__name__)


def parameters_by_name(model: nn.Module) -> Dict[str, nn.Parameter]:
    """Return the parameters under all of their names, of which a tied parameter has several."""
    # the keyword of named_parameters() that asks for all names came with torch 2.0
    return {
        f"{prefix}.{name}" if prefix else name: parameter
        for prefix, module in model.named_modules(remove_duplicate=False)
        for name, parameter in module._parameters.items()
        if parameter is not None
    }


def train_only(model: nn.Module, text: str) -> List[str]:
    """Freeze all parameters but those of the groups named in ``text``, "shared,output".

    A parameter that has several names is in a group if one of its names is.

    Returns the names of the parameters that are trained, in the model's order. Raises ValueError
    for a model without groups, a group that it does not have, and groups without parameters.
    """
    if not isinstance(model, HasParameterGroups):
        raise ValueError(
            f"--train-only {text}: {type(model).__name__} does not divide its parameters into "
            "groups; only a model with parameter_groups() can train a part of itself"
        )
    groups = model.parameter_groups()
    by_name = parameters_by_name(model)
    # by_name has all names of a tied parameter: a group may list any of them
    chosen = entries(text)
    for group in chosen:
        if group not in groups:
            raise ValueError(f"--train-only {text}: {group!r} is none of {', '.join(groups)}")
    # by identity: the same parameter may stand in other groups under other names
    trained = {id(by_name[name]) for group in chosen for name in groups[group]}
    if not trained:
        raise ValueError(
            f"--train-only {text!r}: names no parameter; the groups are {', '.join(groups)}"
        )
    for parameter in model.parameters():
        # what was frozen stays so
        parameter.requires_grad_(parameter.requires_grad and id(parameter) in trained)
    names = [name for name, parameter in model.named_parameters() if parameter.requires_grad]
    logger.info(f"--train-only {text}: {len(names)} of {len(by_name)} parameters are trained")
    return names


def frozen_pairs(model: nn.Module, pairs: Sequence[str]) -> List[str]:
    """Return the pairs none of whose parameters is trained.

    That is [] for a model that does not say which parameters a pair uses.
    """
    if not isinstance(model, HasPairParameters):
        return []
    by_name = parameters_by_name(model)
    return [
        pair
        for pair in pairs
        if not any(by_name[name].requires_grad for name in model.pair_parameters(pair))
    ]


def check_frozen(
    frozen: Sequence[str],
    cfg: StreamsConfig,
    pairs: Sequence[str],
    schedule: str,
    synthetic: Sequence[str] = (),
    trained_synthetic: Sequence[str] = (),
) -> None:
    """Raise ValueError where the schedule needs a pair of which nothing is trained.

    Args:
        frozen: the pairs none of whose parameters is trained.
        cfg: the task's.
        pairs: all of them.
        schedule: that of the run.
        synthetic: streams of synthetic pairs.
        trained_synthetic: those of which something is trained, which --join-at may name as well.
    """
    trained = [pair for pair in pairs if pair not in frozen]
    option = f"--train-only {cfg.train_only}"
    if not trained:
        raise ValueError(f"{option}: trains no parameter that {', '.join(pairs)} use")
    if cfg.main_pair in frozen and schedule == "main+aux":
        raise ValueError(
            f"--main-pair {cfg.main_pair}: {option} trains none of its parameters; must be one of "
            + ", ".join(trained)
        )
    joins = parse_join_at(cfg.join_at, pairs, synthetic)
    allowed = [*trained, *trained_synthetic]
    for name, updates in joins.items():
        if name not in allowed:
            raise ValueError(
                f"--join-at {name}={updates}: {option} trains none of its parameters; allowed: "
                + ", ".join(allowed)
            )
    # among the trained pairs as well, one must take part from the first update
    parse_join_at(cfg.join_at, trained, trained_synthetic)
    for pair in frozen:
        logger.info(f"{pair}: none of its parameters is trained: it takes no part in the updates")
