"""Take parameters out of a saved optimizer state."""

from __future__ import annotations

from typing import Any, NamedTuple, Sequence


class SavedParameter(NamedTuple):
    """One parameter that a saved state was written for: its size, and whether to take it out."""

    size: int
    is_dropped: bool


def without_dropped_parameters(
    state_dict: dict[str, Any], parameters: Sequence[SavedParameter]
) -> dict[str, Any]:
    """Return the state of an optimizer without the dropped parameters.

    Args:
        state_dict: as torch optimizers write it: "state" {number: {name: tensor or value}} and
            "param_groups" with lists of numbers; numbers follow the order of the parameters. With
            fairseq's --fp16 there is one flat parameter instead, all of them concatenated.
        parameters: all parameters at the time of writing, in order.

    Returns state_dict itself when it was not written for these parameters; otherwise a new one.
    """
    groups = state_dict.get("param_groups") or []
    numbers = [number for group in groups for number in group["params"]]
    if not any(parameter.is_dropped for parameter in parameters):
        return state_dict
    if numbers == list(range(len(parameters))):  # a state for each parameter
        return _renumbered(state_dict, parameters)
    if len(numbers) == 1:  # --fp16: all in one flat parameter
        return _cut_flat_parameter(state_dict, parameters)
    return state_dict


def _renumbered(state_dict: dict[str, Any], parameters: Sequence[SavedParameter]) -> dict[str, Any]:
    """Return a state with one entry per parameter, without the dropped entries."""
    remaining = [number for number, entry in enumerate(parameters) if not entry.is_dropped]
    new_number = {old: new for new, old in enumerate(remaining)}
    groups = [
        {
            **group,
            "params": [new_number[old] for old in group["params"] if old in new_number],
        }
        for group in state_dict["param_groups"]
    ]
    state = {
        new_number[old]: entry for old, entry in state_dict["state"].items() if old in new_number
    }
    return {**state_dict, "state": state, "param_groups": groups}


def _cut_flat_parameter(
    state_dict: dict[str, Any], parameters: Sequence[SavedParameter]
) -> dict[str, Any]:
    """Return a state of one flat parameter, without the pieces of the dropped ones."""
    import torch

    sizes = [parameter.size for parameter in parameters]

    def cut(value: Any) -> Any:
        # a number of steps, or a tensor with one value, stays
        if not torch.is_tensor(value) or value.numel() != sum(sizes):
            return value
        pieces = zip(value.split(sizes), parameters)
        return torch.cat([piece for piece, parameter in pieces if not parameter.is_dropped])

    state = {
        number: {name: cut(value) for name, value in entry.items()}
        for number, entry in state_dict["state"].items()
    }
    return {**state_dict, "state": state}
