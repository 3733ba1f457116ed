"""--eval-bleu-detok moses, which joins words by the rules of a language."""

from __future__ import annotations

import argparse
import functools
import json
from typing import TYPE_CHECKING, Any

from ..patch_registry import PatchedModule, patch

if TYPE_CHECKING:
    from fairseq.models import BaseFairseqModel
    from fairseq.tasks.translation import TranslationTask


@patch(
    "fairseq.tasks.translation",
    because="fairseq 0.12.2: --eval-bleu-detok moses joins the words of every language as those of "
    "English, so that BLEU is not that of what fairseq-generate --tokenizer moses writes",
)
def validations_join_words_of_the_target(module: PatchedModule) -> None:
    """Join words as --target-lang does, unless --eval-bleu-detok-args names another language."""
    task = module.TranslationTask
    build = task.build_model

    @functools.wraps(build)
    def build_model(
        self: TranslationTask, cfg: Any, from_checkpoint: bool = False
    ) -> BaseFairseqModel:
        # fairseq looks for the second argument by its name, and gives it where it is there
        model = build(self, cfg, from_checkpoint)
        if self.cfg.eval_bleu:
            options = {"tokenizer": self.cfg.eval_bleu_detok, "target_lang": self.cfg.target_lang}
            options.update(json.loads(self.cfg.eval_bleu_detok_args))
            self.tokenizer = module.encoders.build_tokenizer(argparse.Namespace(**options))
        return model

    task.build_model = build_model
