"""fairseq-generate without any sentence: a shard beyond the last batch, a set of long sentences."""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Any

from ..module_overlay import overlay_names
from ..patch_registry import PatchedModule, patch

if TYPE_CHECKING:
    from fairseq.data import Dictionary


@patch(
    "fairseq_cli.generate",
    because="fairseq 0.12.2: fairseq-generate ends in ZeroDivisionError where it has no sentence "
    "to translate",
)
def no_sentence_takes_no_time(module: PatchedModule) -> None:
    """Give the stopwatch that was never stopped a rate of 0."""

    class Stopwatch(module.StopwatchMeter):  # type: ignore[misc, name-defined]
        """Counts seconds and tokens."""

        def __init__(self, round: int | None = None) -> None:
            super().__init__(round)
            self.sum = sys.float_info.min  # fairseq divides by it

        @property
        def avg(self) -> float:
            """Seconds per token; infinite without tokens."""
            return self.sum / self.n if self.n else float("inf")

    module.StopwatchMeter = Stopwatch


@patch(
    "fairseq_cli.generate",
    because="fairseq 0.12.2: scorers end in ZeroDivisionError or IndexError where nothing was "
    "added to them",
)
def nothing_has_no_score(module: PatchedModule) -> None:
    """Let the result of a scorer without sentences say so, in this command.

    Programs may fill a scorer in ways of their own, copy or pickle it: theirs is fairseq's.
    """
    stock = module.scoring.build_scorer

    @functools.wraps(stock)
    def build_scorer(choice: Any, tgt_dict: Dictionary) -> Any:
        scorer = stock(choice, tgt_dict)
        name = "add_string" if hasattr(scorer, "add_string") else "add"  # as fairseq-generate

        def add_first(*sentence: Any) -> Any:
            """Add the first sentence: there is a result from here on."""
            delattr(scorer, name)
            del scorer.result_string
            return getattr(scorer, name)(*sentence)

        setattr(scorer, name, add_first)
        scorer.result_string = lambda *_: "no sentence to score"
        return scorer

    overlay_names(module, "scoring", build_scorer=build_scorer)
