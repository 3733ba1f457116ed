"""States of an optimizer reach the parameters that they are of, in whatever order these are.

A checkpoint has the parameters of a model by name, and the states of its optimizer by number. Where
languages or pairs of a model are given in another order, its parameters have other numbers.
"""

from __future__ import annotations

import functools
import logging
from typing import TYPE_CHECKING, Any, Iterator, Mapping

from ..module_overlay import overlaid, overlay_names
from ..patch_registry import PatchedModule, patch
from .optimizer_states import in_other_order

if TYPE_CHECKING:
    from fairseq.trainer import Trainer
    from torch import nn

logger = logging.getLogger(__name__)

READER = "load_checkpoint_to_cpu"
# what of a checkpoint has parameters, in the order in which the trainer hands them to the optimizer
PARTS = ("model", "criterion")
STATE = "last_optimizer_state"
# where a checkpoint has the names of what its training trained, in its "extra_state"
TRAINED = "trained parameters"
# the part and the name of a parameter
Name = tuple[str, str]


@patch(
    "fairseq.trainer",
    because="fairseq 0.12.2: a training that goes on with its languages or --lang-pairs in another "
    "order gives parameters the optimizer states of others, without a word",
)
def optimizer_states_follow_names(module: PatchedModule) -> None:
    """Put the optimizer states of a checkpoint into the order of the trainer's parameters."""
    trainer = module.Trainer
    load = trainer.load_checkpoint
    earlier = overlaid(module, "checkpoint_utils", READER)
    # the trainer that restores its optimizer meanwhile
    resuming: list[Trainer] = []

    def load_checkpoint_to_cpu(path: str, *args: Any, **kwargs: Any) -> dict[str, Any]:
        from fairseq import checkpoint_utils

        read = earlier or checkpoint_utils.load_checkpoint_to_cpu
        checkpoint: dict[str, Any] = read(path, *args, **kwargs)
        for resumed in resuming:
            check_trained(checkpoint, path, resumed.get_model(), resumed.get_criterion())
            put_in_order(checkpoint, path, resumed.get_model(), resumed.get_criterion())
        return checkpoint

    @functools.wraps(load)
    def load_checkpoint(
        self: Trainer, filename: str, reset_optimizer: bool = False, *args: Any, **kwargs: Any
    ) -> Any:
        # --ddp-backend fully_sharded joins parameters, which have no names of their own then
        resuming[:] = [] if reset_optimizer or self.is_fsdp else [self]
        try:
            return load(self, filename, reset_optimizer, *args, **kwargs)
        finally:
            resuming.clear()

    overlay_names(module, "checkpoint_utils", **{READER: load_checkpoint_to_cpu})
    trainer.load_checkpoint = load_checkpoint


@patch(
    "fairseq.trainer",
    because="fairseq 0.12.2: a training that goes on with other parameters frozen, as many as "
    "before, gives those that it trains the optimizer states of others, without a word",
)
def trained_parameters_are_noted(module: PatchedModule) -> None:
    """Store the names of what is trained where a part is not."""
    trainer = module.Trainer
    stock = trainer.state_dict

    @functools.wraps(stock)
    def state_dict(self: Trainer) -> dict[str, Any]:
        state: dict[str, Any] = stock(self)
        names = None if self.is_fsdp else trained_names(self.get_model(), self.get_criterion())
        if names is not None:
            state["extra_state"][TRAINED] = names
        return state

    trainer.state_dict = state_dict


def trained_names(model: nn.Module, criterion: nn.Module) -> list[str] | None:
    """Return all names of the parameters that are trained; None where every parameter is."""
    named = [
        (f"{part}.{name}", parameter)
        for part, root in zip(PARTS, (model, criterion))
        for (_, name), parameter in _named(part, root)
    ]
    trained = sorted(name for name, parameter in named if parameter.requires_grad)
    return None if len(trained) == len(named) else trained


def check_trained(
    checkpoint: Mapping[str, Any], path: str, model: nn.Module, criterion: nn.Module
) -> None:
    """Raise ValueError, naming `path`, where the checkpoint's training froze other parameters."""
    recorded = (checkpoint.get("extra_state") or {}).get(TRAINED)
    names = trained_names(model, criterion)
    if not checkpoint.get(STATE) or recorded is None or names is None:
        return  # in fairseq a state of another number of parameters fails
    differing = sorted(set(recorded) ^ set(names))
    if differing:
        raise ValueError(
            f"{path}: {differing[0]} is trained there or here, and not in both "
            f"({len(differing)} such parameters): its optimizer state is of others. Allowed: "
            "options that train the same parameters, or --reset-optimizer"
        )


def put_in_order(
    checkpoint: dict[str, Any], path: str, model: nn.Module, criterion: nn.Module
) -> None:
    """Replace the optimizer state of a checkpoint by that of the present order of parameters.

    A checkpoint in the same order is left as it is, and so is one that lacks parameters: fairseq
    says so when it loads the model. Raises ValueError, naming `path`, where the order differs and
    the state cannot be put into the present one.
    """
    state = checkpoint.get(STATE)
    if not state:
        return
    roots = dict(zip(PARTS, (model, criterion)))
    # as fairseq's trainer hands them to the optimizer
    trained = [p for root in roots.values() for p in root.parameters() if p.requires_grad]
    numbers = {id(parameter): number for number, parameter in enumerate(trained)}
    # of all names of a parameter; neither frozen parameters nor buffers have a number
    by_name = {
        name: numbers[id(parameter)]
        for part, root in roots.items()
        for name, parameter in _named(part, root)
        if id(parameter) in numbers
    }
    saved = _first_names(checkpoint, by_name)
    present = _first_names({part: root.state_dict() for part, root in roots.items()}, by_name)
    if list(saved) == list(present) or len(saved) < len(present):
        return
    try:
        if list(present) != list(range(len(trained))):
            raise ValueError("the model saves its parameters in another order than it trains them")
        sizes = [trained[number].numel() for number in saved]
        place = {number: place for place, number in enumerate(saved)}
        order = [place[number] for number in present]
        checkpoint[STATE] = in_other_order(state, sizes, order)
    except ValueError as reason:
        pairs = zip(saved.items(), present.items())
        there, here = next((old[1][1], new[1][1]) for old, new in pairs if old[0] != new[0])
        raise ValueError(
            f"{path}: its parameters are in another order than those of this training, {there} in "
            f"the place of {here}, and its optimizer state cannot follow: {reason}. Allowed: -s "
            "and -t, or --lang-pairs, in the order of the checkpoint; or --reset-optimizer"
        ) from None
    logger.info(f"{path}: the optimizer state follows its parameters, which are in another order")


def _first_names(
    states: Mapping[str, Mapping[str, Any] | None], by_name: Mapping[Name, int]
) -> dict[int, Name]:
    """Return {number of a parameter: its first name}, in the order of the states."""
    first: dict[int, Name] = {}
    for name in ((part, name) for part in PARTS for name in states.get(part) or ()):
        if name in by_name:
            first.setdefault(by_name[name], name)
    return first


def _named(part: str, root: nn.Module) -> Iterator[tuple[Name, nn.Parameter]]:
    """Yield each parameter under each of its names."""
    # the keyword of named_parameters() that asks for all names came with torch 2.0
    for prefix, module in root.named_modules(remove_duplicate=False):
        for name, parameter in module.named_parameters(recurse=False):
            yield (part, f"{prefix}.{name}" if prefix else name), parameter
