"""--mask-whole-words of masked language models, and --mask-length of denoising tasks."""

from __future__ import annotations

import copy
import functools
from typing import TYPE_CHECKING, Any

from ..module_overlay import overlay_names
from ..patch_registry import PatchedModule, patch
from ..user_errors import OptionError

if TYPE_CHECKING:
    from fairseq.tasks import FairseqTask
    from fairseq.tasks.multilingual_masked_lm import MultiLingualMaskedLMTask
    from torch import Tensor


@patch(
    "fairseq.tasks.masked_lm",
    because="fairseq 0.12.2: masked_lm with --mask-whole-words ends in \"'MaskedLMTask' object has "
    "no attribute 'args'\"",
)
def whole_words_are_those_of_bpe(module: PatchedModule) -> None:
    """Give the task the options of --bpe, by which fairseq tells where words begin."""
    task_class = module.MaskedLMTask
    stock = task_class.load_dataset

    @functools.wraps(stock)
    def load_dataset(self: FairseqTask, split: str, *args: Any, **kwargs: Any) -> None:
        task = self
        if self.cfg.mask_whole_words:
            task = copy.copy(self)  # its sets are those of the task
            # the options of all parts of the run; a task that is made by itself is in none
            run = self.cfg.__dict__.get("_parent")
            task.args = None if run is None else run.bpe
        stock(task, split, *args, **kwargs)

    task_class.load_dataset = load_dataset


@patch(
    "fairseq.tasks.multilingual_masked_lm",
    because="fairseq 0.12.2: multilingual_masked_lm with --mask-whole-words, but without --bpe, "
    "ends in UnboundLocalError",
)
def tokens_are_words_without_bpe(module: PatchedModule) -> None:
    """Mask single tokens where no --bpe says where words begin, as masked_lm does."""
    task = module.MultiLingualMaskedLMTask
    stock = task._get_whole_word_mask

    @functools.wraps(stock)
    def _get_whole_word_mask(self: MultiLingualMaskedLMTask) -> Tensor | None:
        if getattr(self.args, "bpe", None) is None:
            return None
        mask: Tensor | None = stock(self)
        return mask

    task._get_whole_word_mask = _get_whole_word_mask


@patch(
    "fairseq.data.encoders.utils",
    "fairseq.tasks.multilingual_masked_lm",
    because="fairseq 0.12.2: whole words are masked by a method that only some of --bpe have; with "
    "others, such as subword_nmt and characters, a training ends in an AttributeError",
)
def coders_know_where_words_begin(module: PatchedModule) -> None:
    """Refuse the others by name."""
    build = module.encoders.build_bpe

    def build_bpe(cfg: Any, *args: Any, **options: Any) -> Any:
        coder = build(cfg, *args, **options)
        if coder is None or hasattr(coder, "is_beginning_of_word"):
            return coder
        name = getattr(cfg, "bpe", None) or getattr(cfg, "_name", None)
        raise OptionError(
            f"--bpe {name} does not tell where words begin: no whole words can be masked; allowed: "
            "gpt2, sentencepiece, hf_byte_bpe or bert, no --bpe, or --mask-length subword of the "
            "denoising tasks"
        )

    overlay_names(module, "encoders", build_bpe=build_bpe)


@patch(
    "fairseq.tasks.multilingual_denoising",
    because="fairseq 0.12.2: multilingual_denoising masks whole words of --bpe with --mask-length "
    "subword, the default, too",
)
def sub_words_are_masked_when_asked(module: PatchedModule) -> None:
    """Mask single tokens with --mask-length subword, as denoising does."""
    stock = module.get_whole_word_mask

    @functools.wraps(stock)
    def get_whole_word_mask(args: Any, dictionary: Any) -> Tensor | None:
        if args.mask_length == "subword":
            return None
        mask: Tensor | None = stock(args, dictionary)
        return mask

    module.get_whole_word_mask = get_whole_word_mask
