"""The entries of a checkpoint that every version of fairseq writes, and their forms."""

from __future__ import annotations

from typing import Any, Iterator, Mapping

from ..data.data_files import UnreadableFile


def check_entries(path: str, state: Any) -> None:
    """Raise UnreadableFile for a file without these entries, or with others in their place."""
    lacking = ["parameters"]
    if isinstance(state, dict) and isinstance(state.get("model"), Mapping):
        lacking = []
        # from before fairseq 0.6: one optimiser, and the epoch outside of extra_state
        if not state.get("optimizer_history", "best_loss" in state):
            lacking.append("optimizer_history")
        if "extra_state" not in state and "epoch" not in state:
            lacking.append("extra_state")
    lacking = lacking or list(_lacking_parts(state))
    if lacking:
        raise UnreadableFile(
            f"{path}: not a checkpoint of fairseq: it has no {', no '.join(lacking)}"
        )
    for name, kind in (("extra_state", Mapping), ("optimizer_history", list)):
        if name in state and not isinstance(state[name], kind):
            raise UnreadableFile(
                f"{path}: not a checkpoint of fairseq: its {name} is {shown(state[name])}, which "
                f"must be a {'list' if kind is list else 'mapping'}"
            )
    history = state.get("optimizer_history", [{}])
    if not isinstance(history[-1], Mapping):
        raise UnreadableFile(
            f"{path}: not a checkpoint of fairseq: its optimizer_history ends with "
            f"{shown(history[-1])}, which must be a mapping"
        )
    iterator = state.get("extra_state", {}).get("train_iterator")
    if iterator is not None and not isinstance(iterator, Mapping):
        raise UnreadableFile(
            f"{path}: not a checkpoint of fairseq: train_iterator in its extra_state is "
            f"{shown(iterator)}, which must be a mapping"
        )


def _lacking_parts(state: Mapping[str, Any]) -> Iterator[str]:
    """Yield what fairseq needs to read an old checkpoint as a new one, and what is not there."""
    if "optimizer_history" not in state and "optimizer" not in state:
        yield "optimizer"  # of the one whose best_loss is there
    if "extra_state" not in state:
        yield from (name for name in ("batch_offset", "val_loss") if name not in state)
    history = state.get("optimizer_history")
    last = history[-1] if isinstance(history, list) else None
    if isinstance(last, Mapping) and not {"lr_scheduler_state", "best_loss"} & set(last):
        yield "lr_scheduler_state in the last entry of its optimizer_history"


def shown(value: object) -> str:
    """Return a value and its type in a few words."""
    return f"{str(value)[:40]!r} ({type(value).__name__})"
