"""Options that show the steps of iterative refinement, for searches that have none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..patch_registry import PatchedModule, patch
from ..user_errors import OptionError, option_of

if TYPE_CHECKING:
    from fairseq.models import BaseFairseqModel
    from fairseq.tasks import FairseqTask

OPTIONS = ("print_step", "retain_iter_history")


@patch(
    "fairseq.tasks.fairseq_task",
    because="fairseq 0.12.2: --print-step and --retain-iter-history ask every hypothesis for "
    "steps, which those of a beam search do not have",
)
def beams_have_no_steps(module: PatchedModule) -> None:
    """Refuse the options where the task builds fairseq's ordinary search."""
    stock = module.FairseqTask.build_generator

    def build_generator(
        self: FairseqTask, models: list[BaseFairseqModel], args: Any, *more: Any, **options: Any
    ) -> Any:
        # a class of the task's own may have steps
        if options.get("seq_gen_cls") is None:
            check_steps(args)
        return stock(self, models, args, *more, **options)

    module.FairseqTask.build_generator = build_generator


def check_steps(args: Any) -> None:
    """Raise OptionError, naming it, for an option that needs iterative refinement."""
    for name in OPTIONS:
        if getattr(args, name, False):
            raise OptionError(
                f"{option_of(name)}: there are no steps of iterative refinement to show; "
                "allowed: leave it out"
            )
