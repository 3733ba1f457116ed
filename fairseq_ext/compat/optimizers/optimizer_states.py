"""Take parameters out of a saved optimizer state, or put them into another order."""

from __future__ import annotations

from typing import Any, NamedTuple, Sequence

from .master_parameters import KEY

# where a state has the block momentum of --use-bmuf
BLOCKS = "block_momentum"


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
    remaining = [number for number, entry in enumerate(parameters) if not entry.is_dropped]
    if len(remaining) == len(parameters):
        return state_dict
    if numbers == list(range(len(parameters))):  # a state for each parameter
        return _renumbered(state_dict, remaining)
    if len(numbers) == 1:  # --fp16: all in one flat parameter
        return _flat_pieces(state_dict, [parameter.size for parameter in parameters], remaining)
    return state_dict


def in_other_order(
    state_dict: dict[str, Any], sizes: Sequence[int], order: Sequence[int]
) -> dict[str, Any]:
    """Return the state of an optimizer whose parameters are in another order.

    Args:
        state_dict: see ``without_dropped_parameters``.
        sizes: elements of each parameter at the time of writing, in order.
        order: for each parameter in the new order, its number at the time of writing.

    Raises ValueError, with what stands in the way, for a state that has no such order.
    """
    groups = state_dict.get("param_groups") or []
    if len(groups) != 1:
        raise ValueError(f"it has {len(groups)} groups of parameters in place of one")
    if BLOCKS in state_dict:
        raise ValueError("it has the block momentum of --use-bmuf")
    numbers = list(groups[0]["params"])
    if numbers == list(range(len(sizes))):  # a state for each parameter
        reordered = _renumbered(state_dict, order)
    elif len(numbers) == 1 and _flat_sizes(state_dict) <= {sum(sizes)}:
        reordered = _flat_pieces(state_dict, sizes, order)
    else:
        raise ValueError(f"it is not of the {len(sizes)} parameters that are trained")
    exact = state_dict.get(KEY)
    if exact is None:
        return reordered
    if len(exact) != len(sizes):
        raise ValueError(f"it has {len(exact)} parameters in single precision, not {len(sizes)}")
    return {**reordered, KEY: [exact[number] for number in order]}


def _renumbered(state_dict: dict[str, Any], order: Sequence[int]) -> dict[str, Any]:
    """Return a state with one entry for each of the numbers in `order`, in that order."""
    new_number = {old: new for new, old in enumerate(order)}
    groups = [
        {
            **group,
            # torch goes by position: within a group the new numbers ascend
            "params": sorted(new_number[old] for old in group["params"] if old in new_number),
        }
        for group in state_dict["param_groups"]
    ]
    entries = state_dict["state"]
    state = {new: entries[old] for old, new in new_number.items() if old in entries}
    return {**state_dict, "state": state, "param_groups": groups}


def _flat_sizes(state_dict: dict[str, Any]) -> set[int]:
    """Return the numbers of elements that the tensors of a state have, without single numbers."""
    import torch

    values = [value for entry in state_dict["state"].values() for value in entry.values()]
    sizes = {value.numel() for value in values if torch.is_tensor(value)}
    return sizes - {1}


def _flat_pieces(
    state_dict: dict[str, Any], sizes: Sequence[int], order: Sequence[int]
) -> dict[str, Any]:
    """Return a state of one flat parameter, of the pieces in `order` alone, in that order.

    sizes: elements of all pieces, as they are saved.
    """
    import torch

    def cut(value: Any) -> Any:
        # a number of steps, or a tensor with one value, stays
        if not torch.is_tensor(value) or value.numel() != sum(sizes):
            return value
        pieces = value.split(list(sizes))
        return torch.cat([pieces[number] for number in order])

    state = {
        number: {name: cut(value) for name, value in entry.items()}
        for number, entry in state_dict["state"].items()
    }
    return {**state_dict, "state": state}
