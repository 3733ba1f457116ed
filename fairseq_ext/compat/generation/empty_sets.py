"""fairseq-generate without any sentence: a shard beyond the last batch, a set of long sentences."""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Any

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
    "fairseq.scoring",
    because="fairseq 0.12.2: scorers end in ZeroDivisionError or IndexError where nothing was "
    "added to them",
)
def nothing_has_no_score(module: PatchedModule) -> None:
    """Let the result of a scorer without sentences say so."""
    stock = module.build_scorer

    @functools.wraps(stock)
    def build_scorer(choice: Any, tgt_dict: Dictionary) -> Any:
        scorer = stock(choice, tgt_dict)
        name = "add_string" if hasattr(scorer, "add_string") else "add"  # as fairseq-generate
        add, result_string = getattr(scorer, name), scorer.result_string

        def add_and_score(*sentence: Any) -> Any:
            """Add the first sentence: there is a result from here on."""
            setattr(scorer, name, add)
            scorer.result_string = result_string
            return add(*sentence)

        setattr(scorer, name, add_and_score)
        scorer.result_string = lambda *_: "no sentence to score"
        return scorer

    module.build_scorer = build_scorer
