"""Searches whose class, or words that are allowed, the tasks of fairseq do not pass on."""

from __future__ import annotations

import functools
from contextvars import ContextVar
from typing import Any, NamedTuple

from ..context_values import holding
from ..patch_registry import PatchedModule, patch


class Search(NamedTuple):
    """What a task was asked for: the class of a search, and its function of allowed words."""

    kind: type | None = None
    allowed_words: Any = None


STOCK = Search()
# what a task was asked for, while its build_generator runs
search: ContextVar[Search] = ContextVar("search", default=STOCK)


@patch(
    "fairseq.tasks.speech_to_speech",
    "fairseq.tasks.speech_to_text",
    "fairseq.tasks.translation_multi_simple_epoch",
    because="fairseq 0.12.2: build_generator of speech_to_text, speech_to_speech and "
    "translation_multi_simple_epoch ignores seq_gen_cls: tasks of plugins that derive from them "
    "and name a search of their own translate with fairseq's, without a message, or fail with "
    '"unexpected keyword argument" where theirs has options of its own. All three fail so with '
    "prefix_allowed_tokens_fn of the hub interface",
)
def searches_have_their_class(module: PatchedModule) -> None:
    """Remember what the tasks of a module are asked for, for `classes_are_passed_on`."""

    def remembering(stock: Any) -> Any:
        @functools.wraps(stock)
        def build_generator(
            self: Any,
            models: Any,
            args: Any,
            seq_gen_cls: type | None = None,
            extra_gen_cls_kwargs: dict[str, Any] | None = None,
            prefix_allowed_tokens_fn: Any = None,
        ) -> Any:
            with holding(search, Search(seq_gen_cls, prefix_allowed_tokens_fn)):
                return stock(self, models, args, seq_gen_cls, extra_gen_cls_kwargs)

        return build_generator

    for task in [value for value in vars(module).values() if isinstance(value, type)]:
        if task.__module__ == module.__name__ and "build_generator" in vars(task):
            task.build_generator = remembering(task.build_generator)  # type: ignore[attr-defined]


@patch(
    "fairseq.tasks.fairseq_task",
    because="fairseq 0.12.2: the patch before, whose tasks ask this class for the default search",
)
def classes_are_passed_on(module: PatchedModule) -> None:
    """Build a search of the class that the task was asked for; of another one it may itself."""
    stock = module.FairseqTask.build_generator

    @functools.wraps(stock)
    def build_generator(
        self: Any,
        models: Any,
        args: Any,
        seq_gen_cls: type | None = None,
        extra_gen_cls_kwargs: dict[str, Any] | None = None,
        prefix_allowed_tokens_fn: Any = None,
    ) -> Any:
        kind, allowed_words = search.get()
        kind, allowed_words = seq_gen_cls or kind, prefix_allowed_tokens_fn or allowed_words
        with holding(search, STOCK):  # it may build others
            return stock(self, models, args, kind, extra_gen_cls_kwargs, allowed_words)

    module.FairseqTask.build_generator = build_generator
