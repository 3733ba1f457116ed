"""The language whose adapters --criterion sentence_prediction_adapters goes through."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from ..patch_registry import PatchedModule, patch

if TYPE_CHECKING:
    from fairseq.models import BaseFairseqModel


class SampleOfLanguages(dict):
    """A batch whose entry lang_id is an attribute as well."""

    @property
    def lang_id(self) -> list[str]:
        """The language of each sentence."""
        languages: list[str] = self["lang_id"]
        return languages


@patch(
    "fairseq.criterions.sentence_prediction_adapters",
    because="fairseq 0.12.2: sentence_prediction_adapters takes the adapters of English whatever "
    "lang_id a batch has, which it looks for among the attributes of a dict",
)
def adapters_are_of_the_language(module: PatchedModule) -> None:
    """Read the entry lang_id of a batch."""
    criterion = module.SentencePredictionCriterionAdapters
    stock = criterion.forward

    @functools.wraps(stock)
    def forward(
        self: Any, model: BaseFairseqModel, sample: dict[str, Any], reduce: bool = True
    ) -> tuple[Any, Any, dict[str, Any]]:
        """Return (loss, sample size, what is logged)."""
        if "lang_id" in sample:
            sample = SampleOfLanguages(sample)
        result: tuple[Any, Any, dict[str, Any]] = stock(self, model, sample, reduce=reduce)
        return result

    criterion.forward = forward
