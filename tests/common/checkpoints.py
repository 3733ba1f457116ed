"""Comparison of checkpoints to the last bit, without what measures time."""

from pathlib import Path
from typing import Dict, List

import torch
from fairseq import checkpoint_utils

# what measures time
TIMES = ("wps", "ups", "wall", "train_wall", "previous_training_time")
# buffers that fairseq makes and never sets
UNSET = ("_float_tensor",)


def is_time(name: str) -> bool:
    """Whether a logged name is that of a time or speed."""
    return name.rpartition("_")[2] in ("wps", "ups", "wall")


def compared(path: Path) -> Dict:
    """What of a checkpoint must be equal."""
    stored = checkpoint_utils.torch.load(path, map_location="cpu", weights_only=True)
    extra = stored["extra_state"]
    parts = {name: stored[name] for name in ("model", "criterion", "last_optimizer_state")}
    parts["history"] = stored["optimizer_history"][-1]
    parts["extra"] = {
        name: value for name, value in extra.items() if name not in ("metrics", *TIMES)
    }
    return parts


def meters(path: Path) -> Dict:
    """{aggregator: {name: state}} of the meters of training, without those of time.

    The others, "default" and "valid", are never logged by fairseq 0.12.2 nor continued. A meter
    that has counted nothing since its reset is as good as none.
    """
    stored = checkpoint_utils.torch.load(path, map_location="cpu", weights_only=True)[
        "extra_state"
    ]["metrics"]
    return {
        aggregator: {
            name: state
            for _, name, _, state in stored[aggregator]
            if not is_time(name) and state.get("count") != 0
        }
        for aggregator in ("train", "train_inner")
        if aggregator in stored
    }


def differences(whole, resumed, path: str = "") -> List[str]:
    """Where two checkpoints differ, as paths."""
    if path.rpartition(".")[2] in (*TIMES, *UNSET):
        return []
    if type(whole) is not type(resumed):
        return [f"{path}: {type(whole).__name__} and {type(resumed).__name__}"]
    if torch.is_tensor(whole):
        return [] if torch.equal(whole, resumed) else [path]
    if isinstance(whole, dict):
        missing = [f"{path}.{name}: in one only" for name in whole.keys() ^ resumed.keys()]
        both = [name for name in whole if name in resumed]
        return missing + sum((differences(whole[n], resumed[n], f"{path}.{n}") for n in both), [])
    if isinstance(whole, (list, tuple)) and len(whole) == len(resumed):
        pairs = enumerate(zip(whole, resumed))
        return sum((differences(*pair, f"{path}.{number}") for number, pair in pairs), [])
    return [] if whole == resumed else [f"{path}: {whole} and {resumed}"]
