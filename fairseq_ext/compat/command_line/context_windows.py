"""fairseq-eval-lm --context-window: each block is scored after the end of the block before."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any

from ..patch_registry import PatchedModule, patch
from ..user_errors import OptionError

if TYPE_CHECKING:
    from fairseq.tasks import FairseqTask


# {module of fairseq: its task}
TASKS = {
    "fairseq.tasks.language_modeling": "LanguageModelingTask",
    "fairseq.tasks.multilingual_language_modeling": "MultilingualLanguageModelingTask",
}


@patch(
    *TASKS,
    because="fairseq 0.12.2: the context is kept by the process that reads the blocks: with "
    "--num-workers 2, or shards, each has only a part of them, and the context is a wrong one",
)
def blocks_follow_each_other(module: PatchedModule) -> None:
    """Read all blocks by one process, and refuse to take every N-th one only."""
    task = getattr(module, TASKS[module.__name__])
    stock = task.eval_lm_dataloader

    @functools.wraps(stock)
    def eval_lm_dataloader(self: FairseqTask, dataset: Any, *args: Any, **kwargs: Any) -> Any:
        bound = inspect.signature(stock).bind(self, dataset, *args, **kwargs)
        bound.apply_defaults()
        options = bound.arguments
        if options["context_window"] > 0:
            shards = options["num_shards"]
            if shards > 1:
                raise OptionError(
                    f"--num-shards {shards} is not allowed with --context-window: a block needs "
                    "the one before it; allowed: 1"
                )
            options["num_workers"] = min(options["num_workers"], 1)
        return stock(*bound.args, **bound.kwargs)

    task.eval_lm_dataloader = eval_lm_dataloader
