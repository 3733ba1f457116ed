"""What the order of batches depends on besides the seed and the options."""

import math
from typing import Any, Dict, List, Mapping, Sequence

# {attribute: its name in "more", where checkpoints hold it}
STORED_IN_MORE = {
    "joins_in": "synthetic_epoch",
    "begins_at": "synthetic_begin",
    "added_at": "synthetic_added",
    "best_is_bleu": "best_is_bleu",
}


class RunState:
    """The part of a run's history that later epochs depend on.

    It travels in the checkpoints as part of the training iterator's state, because fairseq 0.12.2
    writes ``task.state`` into them but does not read it back when a run resumes. Everything is a
    plain number or string: checkpoints are read as data only.

    Attributes:
        begins: {epoch: updates planned before it}, as far as known.
        left: {pair: first epoch in which it takes no part any more}.
        best: {pair: best validation score so far}.
        waited: {pair: validations since then}.
        best_is_bleu: {pair: True if its best score is BLEU, False if it is the loss}.
        joins_in: {stream that waits for a validation: first epoch in which it takes part}.
        begins_at: {such a stream: updates of the run before that epoch}.
        added_at: {stream that the run began without: updates of the run before it was added}.
        more: what a system adds, {name: {pair: value}}.
    """

    def __init__(self) -> None:
        # checkpoints hold the attributes under their names, those of ``STORED_IN_MORE`` apart:
        # renaming one is a change of format
        self.begins: Dict[int, int] = {1: 0}
        self.left: Dict[str, int] = {}
        self.best: Dict[str, float] = {}
        self.waited: Dict[str, int] = {}
        self.best_is_bleu: Dict[str, bool] = {}
        self.joins_in: Dict[str, int] = {}
        self.begins_at: Dict[str, int] = {}
        self.added_at: Dict[str, int] = {}
        self.more: Dict[str, Dict[str, Any]] = {}

    def has_left(self, epoch: int) -> List[str]:
        """Return the pairs that take no part in the epoch any more."""
        # with the epoch, not as a set: a run that is resumed in the epoch in which a pair stalled
        # plans the rest of it with that pair
        return [pair for pair, first in self.left.items() if epoch >= first]

    def late(
        self, pairs: Sequence[str], join_at: Mapping[str, int], epoch: int, begin: int
    ) -> Dict[str, float]:
        """Return {pair: updates of the epoch before it takes part}; those not in it do at once.

        Where only pairs are left that are still to join, the first of them joins at once:
        otherwise the run would stand still.

        Args:
            pairs: those that the schedule is over.
            join_at: {pair or stream: updates of the run before it takes part}.
            epoch, begin: its number, and the updates of the run before it.
        """
        late: Dict[str, float] = {name: max(0, n - begin) for name, n in join_at.items()}
        # infinity: not in this epoch
        late.update(dict.fromkeys(self.has_left(epoch), math.inf))
        soonest = min(late.get(pair, 0) for pair in pairs)
        if 0 < soonest < math.inf:
            late.update({pair: 0 for pair, wait in late.items() if wait == soonest})
        return late

    def state_dict(self) -> Dict[str, Dict]:
        """Return what a checkpoint holds: copies of all attributes by name."""
        state = {name: dict(value) for name, value in vars(self).items()}
        for name, stored in STORED_IN_MORE.items():
            values = state.pop(name)
            if values:
                state["more"][stored] = values
        return state

    def load_state_dict(self, state: Mapping[str, Mapping]) -> None:
        """Take over the attributes that ``state`` has; other names in it are ignored."""
        if "more" in state:
            more = dict(state["more"])
            read = {name: more.pop(stored, {}) for name, stored in STORED_IN_MORE.items()}
            state = {**state, **read, "more": more}
        for name in vars(self):
            if name in state:
                setattr(self, name, dict(state[name]))

    def note_added(self, history: Mapping[str, Any], streams: Sequence[str], updates: int) -> None:
        """Note which streams the run has had no part of before.

        Args:
            history: what the checkpoint holds, of the streams as well ("synthetic"); of versions
                that did not store these, all count as there from the first update on.
            streams: the synthetic ones of the run that goes on.
            updates: those that the run has done; fewer than before where they are counted anew.
        """
        before = history.get("more", {}).get(STORED_IN_MORE["added_at"], {})
        added = {stream: min(number, updates) for stream, number in before.items()}
        added.update(dict.fromkeys(set(streams) - set(history.get("synthetic", streams)), updates))
        present = {name: number for name, number in added.items() if name in streams}
        self.added_at = {name: number for name, number in present.items() if number}

    @staticmethod
    def updates_before(position: Mapping[str, Any], updates: int) -> int:
        """Return the updates of the run before a position that `state_dict` is part of.

        ``updates``: those that the optimiser counts, for a position that does not say.
        """
        streams = position.get("streams", {})
        begin = streams.get("begins", {}).get(position["epoch"], updates)
        return int(streams.get("position", {}).get("of_run", begin))

    def count_epochs_anew(self, updates: int) -> None:
        """Begin the run's next epoch, after so many updates, as epoch 1 (--reset-dataloader).

        What was to happen in that epoch happens in epoch 1, what has happened remains.
        """
        self.begins = {1: updates}
        self.left = dict.fromkeys(self.left, 1)
        self.joins_in = {stream: 0 if stream in self.begins_at else 1 for stream in self.joins_in}
