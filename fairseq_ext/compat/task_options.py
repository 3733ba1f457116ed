"""Options of tasks that look for them under a name from before fairseq 0.12."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .patch_registry import PatchedModule, patch

if TYPE_CHECKING:
    from argparse import Namespace

    from fairseq.tasks.translation import TranslationTask


@patch(
    "fairseq.tasks.translation_from_pretrained_bart",
    "fairseq.tasks.translation_from_pretrained_xlm",
    because="fairseq 0.12.2: the task of mBART ends in an AttributeError, since its options are no "
    "longer under the name `args`",
)
def tasks_find_their_options(module: PatchedModule) -> None:
    """Give the tasks of the module their options under both names."""

    def args(self: TranslationTask) -> Namespace:
        return self.cfg

    for name in ("TranslationFromPretrainedBARTTask", "TranslationFromPretrainedXLMTask"):
        if hasattr(module, name):
            getattr(module, name).args = property(args)
