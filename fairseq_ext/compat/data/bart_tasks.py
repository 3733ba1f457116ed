"""Pretraining and fine-tuning of BART and mBART."""

from __future__ import annotations

import argparse
import functools
from typing import TYPE_CHECKING, Any

from ..patch_registry import PatchedModule, patch
from .older_tasks import OptionsOfTask

if TYPE_CHECKING:
    from fairseq.tasks import FairseqTask


@patch(
    "fairseq.tasks.translation_from_pretrained_bart",
    because="fairseq 0.12.2: with mBART, --sampling, --diverse-beam-groups, --diversity-rate, "
    "--lm-path and other options of the search have no effect",
)
def bart_searches_as_asked(module: PatchedModule) -> None:
    """Build the generator as other tasks do; its end of a sentence is the target language."""
    task = module.TranslationFromPretrainedBARTTask
    stock = task.build_generator

    @functools.wraps(stock)
    def build_generator(
        self: FairseqTask,
        models: list[Any],
        args: Any,
        seq_gen_cls: Any = None,
        extra_gen_cls_kwargs: dict[str, Any] | None = None,
        **more: Any,
    ) -> Any:
        if getattr(args, "score_reference", False):
            return stock(self, models, args)
        end = self.target_dictionary.index(f"[{self.args.target_lang}]")
        extra = {**(extra_gen_cls_kwargs or {}), "eos": end}
        # found when it is called: the base class has patches of its own
        build = super(task, self).build_generator
        return build(models, args, seq_gen_cls, extra, **more)

    task.build_generator = build_generator


@patch(
    "fairseq.tasks.denoising",
    because="fairseq 0.12.2: denoising and multilingual_denoising, so BART and mBART, fail with "
    "'conflicting option string: --max-source-positions'",
)
def denoising_shares_options(module: PatchedModule) -> None:
    """Let the task declare only the options that the model has not declared."""
    add = module.DenoisingTask.add_args

    def add_args(parser: argparse.ArgumentParser) -> None:
        add(OptionsOfTask(parser))

    module.DenoisingTask.add_args = staticmethod(add_args)
