"""Searches of plugins whose class the tasks of fairseq do not pass on."""

from __future__ import annotations

import functools
from contextvars import ContextVar
from typing import Any

from ..context_values import holding
from ..patch_registry import PatchedModule, patch

# the class of a search that a task was asked for, while its build_generator runs
search_class: ContextVar[type | None] = ContextVar("search_class", default=None)


@patch(
    "fairseq.tasks.speech_to_speech",
    "fairseq.tasks.speech_to_text",
    "fairseq.tasks.translation_multi_simple_epoch",
    because="fairseq 0.12.2: build_generator of speech_to_text, speech_to_speech and "
    "translation_multi_simple_epoch ignores seq_gen_cls: tasks of plugins that derive from them "
    "and name a search of their own translate with fairseq's, without a message, or fail with "
    '"unexpected keyword argument" where theirs has options of its own',
)
def searches_have_their_class(module: PatchedModule) -> None:
    """Remember the class that the tasks of a module are asked for, for `classes_are_passed_on`."""

    def remembering(stock: Any) -> Any:
        @functools.wraps(stock)
        def build_generator(
            self: Any,
            models: Any,
            args: Any,
            seq_gen_cls: type | None = None,
            extra_gen_cls_kwargs: dict[str, Any] | None = None,
        ) -> Any:
            with holding(search_class, seq_gen_cls):
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
        seq_gen_cls = seq_gen_cls or search_class.get()
        with holding(search_class, None):  # it may build others
            return stock(
                self, models, args, seq_gen_cls, extra_gen_cls_kwargs, prefix_allowed_tokens_fn
            )

    module.FairseqTask.build_generator = build_generator
