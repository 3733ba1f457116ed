"""The examples truncated_bptt and adaptive_span: what the model remembers of earlier blocks."""

from __future__ import annotations

import functools
import importlib
import sys
from typing import Any, Callable

from ..imported_examples import modules_of_examples
from ..patch_registry import PatchedModule, patch

TRANSFORMER_XL = "transformers.models.transfo_xl"
DEPRECATED = "transformers.models.deprecated.transfo_xl"


@patch(
    *modules_of_examples("truncated_bptt.transformer_xl_model"),
    because="transformers 4.36 moved Transformer-XL and 5.0 removed it: --arch transformer_xl ends "
    "in the error of a module that has gone since 4.0",
)
def transformer_xl_is_found(module: PatchedModule) -> None:
    """Import Transformer-XL from where transformers has it, or say which versions have it."""
    decoder = module.TransformerXLDecoder
    stock = decoder.__init__

    @functools.wraps(stock)
    def __init__(self: Any, cfg: Any, task: Any) -> None:
        import_transformer_xl()
        try:
            stock(self, cfg, task)
        except ImportError as error:
            raise ImportError(
                "--arch transformer_xl needs the Transformer-XL of the package transformers, which "
                f"is not there ({error}); allowed: a version before 5, such as "
                "pip install 'transformers<5'"
            ) from error

    decoder.__init__ = __init__


def import_transformer_xl() -> None:
    """Import `transformers.models.transfo_xl`, which may have moved; do nothing without it."""
    for name in (TRANSFORMER_XL, DEPRECATED):
        try:
            sys.modules[TRANSFORMER_XL] = importlib.import_module(name)
        except ImportError:
            continue
        return


@patch(
    *modules_of_examples(
        "adaptive_span.truncated_bptt_lm_task", "truncated_bptt.truncated_bptt_lm_task"
    ),
    because="fairseq 0.12.2: a validation of truncated_bptt_lm begins with what the model "
    "remembers of the training text, so that its loss is not that of fairseq-validate; the "
    "training goes on with what it remembers of the validation text, and an epoch with the end of "
    "the one before",
)
def memories_are_of_their_text(module: PatchedModule) -> None:
    """Give training and validation a memory each, which the first block of a text empties."""
    task = module.TruncatedBPTTLMTask
    stock = task._collate_fn

    @functools.wraps(stock)
    def _collate_fn(self: Any, items: Any) -> dict[str, Any]:
        batch: dict[str, Any] = stock(self, items)
        batch["is_beginning"] = items[0][0] == 0  # no tensor: a step must not wait for a GPU
        return batch

    task._collate_fn = _collate_fn
    task.train_step = remembering(task.train_step, "training")
    task.valid_step = remembering(task.valid_step, "validation")


def remembering(stock: Callable[..., Any], text: str) -> Callable[..., Any]:
    """Return a step of a task with the memory of `text`, which the task keeps meanwhile."""

    @functools.wraps(stock)
    def step(self: Any, sample: Any, model: Any, *args: Any, **kwargs: Any) -> Any:
        decoder = getattr(model, "decoder", None)
        if decoder is None or not hasattr(decoder, "_mems"):
            return stock(self, sample, model, *args, **kwargs)
        memories = vars(self).setdefault("memories", {})
        is_beginning = sample.get("is_beginning", False)
        decoder._mems = None if is_beginning else memories.get(text)
        answer = stock(self, sample, model, *args, **kwargs)
        memories[text] = decoder._mems
        return answer

    return step
