"""BLEU of multilingual models: of the words, without the tag of the language.

The tag is in every reference and every hypothesis. Counted as a word it is always right.
"""

from __future__ import annotations

import functools
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, ContextManager, TextIO

from ..context_values import holding
from ..patch_registry import PatchedModule, patch
from ..surrounded_calls import call_within

if TYPE_CHECKING:
    import torch
    from fairseq.dataclass.configs import FairseqConfig
    from fairseq.tasks.translation import TranslationTask

# what fairseq-generate leaves out of the lines that it prints, while it runs
_hidden: ContextVar[frozenset[int]] = ContextVar("_hidden", default=frozenset())


def without(tokens: torch.Tensor, symbols: frozenset[int]) -> torch.Tensor:
    """Return tokens [length] without these symbols."""
    for symbol in symbols:
        tokens = tokens[tokens != symbol]
    return tokens


@patch(
    "fairseq_cli.generate",
    because="fairseq 0.12.2: BLEU of tokens counts the tag of the target language, which is always "
    "right (translation_multi_simple_epoch, translation_from_pretrained_bart)",
)
def hidden_symbols_are_known(module: PatchedModule) -> None:
    """Note what the printed lines are without."""
    stock = module.get_symbols_to_strip_from_output

    @functools.wraps(stock)
    def get_symbols_to_strip_from_output(generator: Any) -> Any:
        symbols = stock(generator)
        _hidden.set(frozenset(symbols))
        return symbols

    def hold_symbols(cfg: FairseqConfig, output_file: TextIO) -> ContextManager[None]:
        return holding(_hidden, frozenset())

    module.get_symbols_to_strip_from_output = get_symbols_to_strip_from_output
    call_within(module, "_main", hold_symbols)


@patch(
    "fairseq.scoring.bleu",
    because="fairseq 0.12.2: the scorer of tokens is not told which of them are no words",
)
def hidden_symbols_are_not_scored(module: PatchedModule) -> None:
    """Compare without what is not printed; the scorer itself leaves out the end of a sentence."""
    scorer = module.Scorer
    stock = scorer.add

    @functools.wraps(stock)
    def add(self: Any, ref: torch.Tensor, pred: torch.Tensor) -> None:
        symbols = _hidden.get() - {self.eos}
        stock(self, without(ref, symbols), without(pred, symbols))

    scorer.add = add


class TaglessGenerator:
    """A generator whose hypotheses lack the symbol that ends them.

    Args:
        generator: one of fairseq's. tag: the symbol.
    """

    def __init__(self, generator: Any, tag: int) -> None:
        self.generator = generator
        self.symbols = frozenset({tag})

    def generate(self, *args: Any, **options: Any) -> list[list[dict[str, Any]]]:
        """Return what the generator does, the tokens being without the tag."""
        sentences: list[list[dict[str, Any]]] = self.generator.generate(*args, **options)
        return [
            [{**entry, "tokens": without(entry["tokens"], self.symbols)} for entry in hypotheses]
            for hypotheses in sentences
        ]


@patch(
    "fairseq.tasks.translation_from_pretrained_bart",
    because="fairseq 0.12.2: --eval-bleu of mBART counts the tag of the target language, which is "
    "always right, so that BLEU is too high",
)
def bart_is_validated_by_its_words(module: PatchedModule) -> None:
    """Compute the BLEU of a batch without the tag."""
    task = module.TranslationFromPretrainedBARTTask

    def _inference_with_bleu(
        self: TranslationTask, generator: Any, sample: dict[str, Any], model: Any
    ) -> Any:
        tag = self.target_dictionary.index(f"[{self.args.target_lang}]")
        target = sample["target"]
        words = target.masked_fill(target == tag, self.target_dictionary.pad())
        # found when it is called: the base class has patches of its own
        stock = super(task, self)._inference_with_bleu
        return stock(TaglessGenerator(generator, tag), {**sample, "target": words}, model)

    task._inference_with_bleu = _inference_with_bleu


@patch(
    "fairseq.tasks.translation_multi_simple_epoch",
    because="fairseq 0.12.2: --keep-inference-langtok is looked for among the options of the "
    "search, where it is not, and has no effect",
)
def tags_are_kept_when_asked(module: PatchedModule) -> None:
    """Build the generator of other tasks, which hides nothing but the end of a sentence."""
    task = module.TranslationMultiSimpleEpochTask
    stock = task.build_generator

    @functools.wraps(stock)
    def build_generator(self: Any, *args: Any, **options: Any) -> Any:
        if getattr(self.args, "keep_inference_langtok", False):
            return super(task, self).build_generator(*args, **options)
        return stock(self, *args, **options)

    task.build_generator = build_generator
