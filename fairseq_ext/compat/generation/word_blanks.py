"""Texts whose words have no blanks between them, of which BLEU counts almost nothing."""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING, Any, Iterable, Mapping, Sequence

from ..patch_registry import PatchedModule, patch
from ..surrounded_calls import call_before

if TYPE_CHECKING:
    from torch import Tensor, nn

logger = logging.getLogger(__name__)

# Thai, Lao, Tibetan, Burmese, Khmer, kana and Chinese characters
UNDIVIDED = re.compile(
    "[\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]"
)
KANA, CHINESE = "[\u3040-\u30ff]", "[\u3400-\u9fff\uf900-\ufaff]"
# characters of such a script for each word; lines that are cut into words have about two
MANY = 5


def lacks_blanks(lines: Iterable[str]) -> bool:
    """Return True if a text is mostly in scripts without blanks, and is not cut into words."""
    text = " ".join(lines)
    characters = len(UNDIVIDED.findall(text))
    letters = sum(character.isalpha() for character in text)
    return 2 * characters > letters and characters > MANY * len(text.split())


def tokenisers_for(lines: Iterable[str]) -> tuple[str, ...]:
    """Return sacrebleu's tokenisers that cut such texts; zh cuts no script but Chinese."""
    text = " ".join(lines)
    if re.search(KANA, text):
        return "ja-mecab", "char", "flores200"
    return ("zh", "char", "flores200") if re.search(CHINESE, text) else ("char", "flores200")


def any_of(names: Sequence[str]) -> str:
    """Return `a, b or c`."""
    return f"{', '.join(names[:-1])} or {names[-1]}"


@patch(
    "fairseq.scoring.bleu",
    because="fairseq 0.12.2: --scoring sacrebleu takes a line of Chinese or Thai for one word: "
    "BLEU is about 0 whatever was translated, without a word about it",
)
def sacrebleu_names_texts_without_blanks(module: PatchedModule) -> None:
    """Warn where --sacrebleu-tokenizer leaves such references as they are."""
    scorer = module.SacrebleuScorer

    def warn_of_references(self, order: int = 4) -> None:
        # of lines that were tokenised, as zh and char do
        if lacks_blanks(self.ref):
            logger.warning(
                "references have no blanks between words, which BLEU counts; --scoring sacrebleu "
                f"with --sacrebleu-tokenizer {any_of(tokenisers_for(self.ref))} cuts the texts"
            )

    call_before(scorer, "result_string", warn_of_references)


@patch(
    "fairseq.tasks.translation",
    because="fairseq 0.12.2: --eval-bleu of Chinese or Thai is about 0 throughout, and chooses "
    "checkpoints, without a word about it",
)
def validations_name_texts_without_blanks(module: PatchedModule) -> None:
    """Warn at the first batch whose references are such texts."""
    task = module.TranslationTask

    def references(self, target: Tensor) -> Iterable[str]:
        """Yield the lines that are scored, as sacrebleu is given them; target: (B, T)."""
        for tokens in target.int().cpu():
            tokens = module.utils.strip_pad(tokens, self.tgt_dict.pad())
            line = self.tgt_dict.string(tokens, self.cfg.eval_bleu_remove_bpe)
            yield self.tokenizer.decode(line) if self.tokenizer else line

    def warn_of_references(self, generator: Any, sample: Mapping[str, Any], model: nn.Module):
        is_first = not getattr(self, "_knows_blanks", False)
        self._knows_blanks = True
        if is_first and not self.cfg.eval_tokenized_bleu:
            if lacks_blanks(references(self, sample["target"])):
                logger.warning(
                    "references have no blanks between words, which BLEU counts; "
                    "--eval-tokenized-bleu in place of --eval-bleu-remove-bpe counts sub-words"
                )

    call_before(task, "_inference_with_bleu", warn_of_references)
