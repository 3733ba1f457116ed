"""What the criteria of speech_to_speech log: --multitask-config-yaml, --mcd-normalize-type."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from ..patch_registry import PatchedModule, patch

if TYPE_CHECKING:
    from fairseq.criterions.speech_to_speech_criterion import MultitaskCriterion


@patch(
    "fairseq.criterions.speech_to_speech_criterion",
    because="fairseq 0.12.2: the losses of --multitask-config-yaml are logged per sentence, with "
    "and without --sentence-avg",
)
def multitasks_average_alike(module: PatchedModule) -> None:
    """Average the loss of a multitask as that of the task."""
    criterion = module.MultitaskCriterion
    build = criterion.__init__

    @functools.wraps(build)
    def __init__(self: MultitaskCriterion, multitask_tasks: dict[str, Any]) -> None:
        build(self, multitask_tasks)
        for part in self.multitask_criterion.values():
            # stock has the text "${optimization.sentence_avg}" here
            part.sentence_avg = self.sentence_avg

    criterion.__init__ = __init__


@patch(
    "fairseq.criterions.speech_to_speech_criterion",
    because="fairseq 0.12.2: --mcd-normalize-type pred and path log the mean of two distortions, "
    "one divided by the frames of the target",
)
def distortions_have_one_divisor(module: PatchedModule) -> None:
    """Divide both sums of speech_to_spectrogram by the frames that the option names."""
    criterion = module.SpeechToSpectrogramMultitaskTaskCriterion
    stock = criterion.reduce_metrics.__func__

    @functools.wraps(stock)
    def reduce_metrics(cls: type, logging_outputs: list[dict[str, Any]]) -> None:
        # the base class divides by targ_frames what the class divides by norm_frames
        stock(
            cls,
            [
                {**log, "targ_frames": log["norm_frames"]} if "norm_frames" in log else log
                for log in logging_outputs
            ],
        )

    criterion.reduce_metrics = classmethod(reduce_metrics)
