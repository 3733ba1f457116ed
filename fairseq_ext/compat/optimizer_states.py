"""Take parameters out of a saved optimizer state."""

from typing import NamedTuple


class Place(NamedTuple):
    """One parameter that a saved state was written for: its size, and whether to take it out."""

    size: int
    dropped: bool


def without_places(state_dict, places):
    """The state of an optimizer without the dropped parameters.

    state_dict: as written by torch optimizers: "state" {number: {name: tensor or value}} and
        "param_groups" with lists of numbers; numbers follow the order of the parameters. With
        fairseq's --fp16 there is one flat parameter instead, all of them behind each other.
    places: all parameters at the time of writing, in order.
    Returns state_dict itself when it was not written for these places; otherwise a new one.
    """
    groups = state_dict.get("param_groups") or []
    numbers = [number for group in groups for number in group["params"]]
    if not any(place.dropped for place in places):
        return state_dict
    if numbers == list(range(len(places))):
        return _renumbered(state_dict, places)
    if len(numbers) == 1:
        return _cut(state_dict, places)
    return state_dict


def _renumbered(state_dict, places):
    kept = [number for number, place in enumerate(places) if not place.dropped]
    new = {old: number for number, old in enumerate(kept)}
    groups = [
        {**group, "params": [new[number] for number in group["params"] if number in new]}
        for group in state_dict["param_groups"]
    ]
    state = {new[number]: entry for number, entry in state_dict["state"].items() if number in new}
    return {**state_dict, "state": state, "param_groups": groups}


def _cut(state_dict, places):
    import torch

    sizes = [place.size for place in places]

    def cut(value):
        if not torch.is_tensor(value) or value.numel() != sum(sizes):
            return value
        parts = zip(value.split(sizes), places)
        return torch.cat([part for part, place in parts if not place.dropped])

    state = {
        number: {name: cut(value) for name, value in entry.items()}
        for number, entry in state_dict["state"].items()
    }
    return {**state_dict, "state": state}
