"""Batches of --max-tokens: a sentence that is longer than a batch may be is named."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Callable, ContextManager

from ..context_values import holding
from ..patch_registry import PatchedModule, patch
from ..surrounded_calls import call_before, call_within
from ..user_errors import OptionError

if TYPE_CHECKING:
    import numpy as np
    from fairseq.trainer import Trainer

# the option that says how large the batches are that are made
limiting_option: ContextVar[str] = ContextVar("limiting_option", default="--max-tokens")


@patch(
    "fairseq.data.data_utils",
    because="fairseq 0.12.2: a sentence longer than --max-tokens ends in an assertion that names "
    "no sentence",
)
def sentences_fit_in_max_tokens(module: PatchedModule) -> None:
    """Name the longest sentence and its length."""

    def check_longest(
        indices: np.ndarray,
        num_tokens_fn: Callable[[int], int],
        num_tokens_vec: np.ndarray | None = None,
        max_tokens: int | None = None,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        # batches of fixed shapes have sizes of their own
        has_shapes = (args[2] if len(args) > 2 else kwargs.get("fixed_shapes")) is not None
        limit = -1 if max_tokens is None or has_shapes else int(max_tokens)
        if num_tokens_vec is not None and limit > 0 and len(num_tokens_vec):
            place = int(num_tokens_vec.argmax())
            longest = int(num_tokens_vec[place])
            if longest > limit:
                raise OptionError(
                    f"{limiting_option.get()} {limit} is less than the {longest} tokens of "
                    f"sentence number {int(indices[place])}; allowed: at least {longest}, or "
                    f"--max-source-positions {limit} --max-target-positions {limit} with "
                    "--skip-invalid-size-inputs-valid-test, which leave such sentences out"
                )

    call_before(module, "batch_by_size", check_longest)


@patch("fairseq.trainer", because="fairseq 0.12.2, as before")
def batches_of_validation_have_their_option(module: PatchedModule) -> None:
    """Let --max-tokens-valid be named where it is another limit than --max-tokens."""

    def name_option(self: Trainer, *args: Any, **kwargs: Any) -> ContextManager[None]:
        sizes = self.cfg.dataset
        is_other = sizes.max_tokens_valid != sizes.max_tokens
        return holding(limiting_option, "--max-tokens-valid" if is_other else "--max-tokens")

    call_within(module.Trainer, "get_valid_iterator", name_option)
