"""What trainers and programs for fairseq 0.9 and 0.10 read and call."""

from __future__ import annotations

import argparse
import functools
from typing import TYPE_CHECKING, Any, Callable

from ..computed_attributes import AttributeUntilSet
from ..data.options_of_tasks import ABSENT, option_of_run
from ..generation.older_programs import options_in_one
from ..patch_registry import PatchedModule, patch

if TYPE_CHECKING:
    from fairseq.dataclass.configs import FairseqConfig


class OptionsOfTrainer(argparse.Namespace):
    """The options of a run in one Namespace, for reading, as they are at that moment.

    A copy is a plain Namespace, and so is what pickle stores.
    """

    def __init__(self, trainer: Any) -> None:
        object.__setattr__(self, "_trainer", trainer)

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]  # what vars() returns
        return dict(vars(options_in_one(self._trainer.cfg, self._trainer.task)))

    def __getattr__(self, name: str) -> Any:
        value = ABSENT if name.startswith("__") else option_of_run(self._trainer.cfg, name)
        if value is ABSENT:
            raise AttributeError(f"Trainer.args has no option {name!r}")
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(
            f"args.{name} of a trainer would change nothing: args is for reading; change its cfg"
        )

    def __reduce__(self) -> Any:
        return argparse.Namespace, (), vars(self)


@patch(
    "fairseq.trainer",
    because="fairseq 0.12: trainers and programs for 0.9 and 0.10 that read trainer.args.max_epoch "
    "fail with \"'Trainer' object has no attribute 'args'\"",
)
def trainers_have_args(module: PatchedModule) -> None:
    """Give trainers the options of the run in one Namespace."""
    module.Trainer.args = AttributeUntilSet(OptionsOfTrainer)


@patch(
    "fairseq.checkpoint_utils",
    because="fairseq 0.12 dropped checkpoint_utils.save_state: trainers for 0.9 and 0.10 with a "
    "save_checkpoint of their own fail with \"has no attribute 'save_state'\"",
)
def states_are_saved(module: PatchedModule) -> None:
    """Write a checkpoint of what a trainer of fairseq 0.10 gives."""

    def save_state(
        filename: str,
        args: Any,
        model_state_dict: Any,
        criterion: Any,
        optimizer: Any,
        lr_scheduler: Any,
        num_updates: int,
        optim_history: Any = None,
        extra_state: Any = None,
    ) -> None:
        from fairseq import utils

        present = {
            "criterion_name": type(criterion).__name__,
            "optimizer_name": type(optimizer).__name__,
            "lr_scheduler_state": lr_scheduler.state_dict(),
            "num_updates": num_updates,
        }
        state = {
            **stored_options(args),
            "model": model_state_dict or {},
            "optimizer_history": [*(optim_history or []), present],
            "extra_state": extra_state or {},
        }
        if criterion is not None and utils.has_parameters(criterion):
            state["criterion"] = criterion.state_dict()
        if not leaves_out_optimizer(args):
            state["last_optimizer_state"] = optimizer.state_dict()
        module.torch_persistent_save(utils.move_to_cpu(state), filename)

    module.save_state = save_state


def stored_options(args: Any) -> dict[str, Any]:
    """Return the entry of a checkpoint for options in a Namespace, or in groups."""
    from omegaconf import OmegaConf

    if OmegaConf.is_config(args):
        return {"args": None, "cfg": OmegaConf.to_container(args, resolve=True, enum_to_str=True)}
    # one of the run that changes is stored as it is now
    return {"args": argparse.Namespace(**vars(args))}


def leaves_out_optimizer(args: Any) -> bool:
    """True if the options say --no-save-optimizer-state."""
    from omegaconf import OmegaConf

    options = args.checkpoint if OmegaConf.is_config(args) else args
    return bool(getattr(options, "no_save_optimizer_state", False))


class MainOfNamespace:
    """The main function of a program for fairseq 0.10, called with the options of today.

    It has the program's own options, in which the place of this process among the workers is
    noted first. The processes that fairseq starts get a copy of both.
    """

    def __init__(self, main: Callable[..., Any], args: argparse.Namespace) -> None:
        self.main, self.args = main, args

    def __call__(self, cfg: FairseqConfig, **options: Any) -> Any:
        vars(self.args).update(
            cfg.distributed_training, checkpoint_suffix=cfg.checkpoint.checkpoint_suffix
        )
        return self.main(self.args, **options)


@patch(
    "fairseq.distributed.utils",
    because="fairseq 0.12: programs for 0.9 and 0.10 with a changed copy of train.py, which call "
    "distributed_utils.call_main(args, main), fail with \"'Namespace' object has no attribute "
    "'distributed_training'\"",
)
def mains_take_one_namespace(module: PatchedModule) -> None:
    """Call the main function of a program with options in one Namespace, too."""
    stock = module.call_main

    @functools.wraps(stock)
    def call_main(cfg: Any, main: Callable[..., Any], **kwargs: Any) -> Any:
        from fairseq.dataclass.utils import convert_namespace_to_omegaconf

        if not isinstance(cfg, argparse.Namespace):
            return stock(cfg, main, **kwargs)
        return stock(convert_namespace_to_omegaconf(cfg), MainOfNamespace(main, cfg), **kwargs)

    module.call_main = call_main
