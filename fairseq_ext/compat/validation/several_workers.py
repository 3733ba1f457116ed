"""fairseq-validate and fairseq-eval-lm with --distributed-world-size: what workers put together."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from ..module_overlay import overlaid, overlay_names
from ..patch_registry import PatchedModule, patch
from ..surrounded_calls import call_before
from ..user_errors import OptionError

if TYPE_CHECKING:
    from argparse import Namespace

    from fairseq.dataclass.configs import FairseqConfig
    from fairseq.tasks import FairseqTask


@patch(
    "fairseq_cli.validate",
    because="fairseq 0.12.2: fairseq-validate with several workers ends in KeyError: 'net_input' "
    "where the batches are no multiple of them, and in 'encoded data size exceeds max_size' after "
    "some tens of batches",
)
def workers_validate_what_they_have(module: PatchedModule) -> None:
    """Leave missing batches out, and gather what the workers log batch by batch."""
    from fairseq import checkpoint_utils
    from fairseq.distributed import utils as distributed_utils

    name = "load_model_ensemble_and_task"
    # other patches have replaced it too
    load = overlaid(module, "checkpoint_utils", name)

    def load_model_ensemble_and_task(paths: Any, *args: Any, **options: Any) -> Any:
        """Return what fairseq does; the task logs nothing for a worker without a batch."""
        stock = load or checkpoint_utils.load_model_ensemble_and_task
        models, cfg, task = stock(paths, *args, **options)
        _log_nothing_of_missing_batches(task)
        return models, cfg, task

    def all_gather_list(data: list[Any], group: Any = None, max_size: int = 16384) -> list[Any]:
        """Return the logs of all workers; each has as many, with {} for missing batches."""
        gathered = [distributed_utils.all_gather_list(log, group, max_size) for log in data]
        return [[log for log in logs if log] for logs in gathered]

    overlay_names(module, "checkpoint_utils", **{name: load_model_ensemble_and_task})
    overlay_names(module, "distributed_utils", all_gather_list=all_gather_list)


def _log_nothing_of_missing_batches(task: FairseqTask) -> None:
    """Let ``task.valid_step`` return zeros for the empty batch of a worker that has none left."""
    stock = task.valid_step

    @functools.wraps(stock)
    def valid_step(sample: Any, *args: Any, **kwargs: Any) -> Any:
        if sample is None or len(sample) == 0:
            return 0.0, 0, {}
        return stock(sample, *args, **kwargs)

    task.valid_step = valid_step


@patch(
    "fairseq_cli.eval_lm",
    because="fairseq 0.12.2: fairseq-eval-lm with several workers prints the words of the first "
    "one alone",
)
def words_of_other_workers_are_not_printed(module: PatchedModule) -> None:
    """Refuse to print words with several workers; the perplexity is of all."""

    def check_options(cfg: FairseqConfig | Namespace, *args: Any, **kwargs: Any) -> None:
        # a Namespace, which main() takes too, holds all options itself
        workers = getattr(cfg, "distributed_training", cfg).distributed_world_size
        for name in ("output_word_probs", "output_word_stats"):
            if workers > 1 and getattr(getattr(cfg, "eval_lm", cfg), name):
                raise OptionError(
                    f"--distributed-world-size {workers} is not allowed with "
                    f"--{name.replace('_', '-')}: only the words of the first worker would be "
                    "printed; allowed: 1"
                )

    call_before(module, "main", check_options)
