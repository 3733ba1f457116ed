"""The names in --model-overrides are looked up in the configuration of each checkpoint."""

from __future__ import annotations

import ast
import contextvars
from typing import TYPE_CHECKING, Any, ContextManager, Iterator

from ..command_line.chosen_classes import chosen_classes, declared_options, is_stock
from ..context_values import holding
from ..patch_registry import PatchedModule, patch
from ..surrounded_calls import call_before, call_within
from ..user_errors import OptionError, hint_for
from .configurations import stored_name
from .refusals import path_being_read

if TYPE_CHECKING:
    from fairseq.dataclass.configs import FairseqConfig

# while a command runs: fairseq's functions do not pass them on
override_names: contextvars.ContextVar[tuple[str, ...]] = contextvars.ContextVar(
    "names of --model-overrides", default=()
)


@patch(
    "fairseq_cli.generate",
    "fairseq_cli.interactive",
    "fairseq_cli.validate",
    "fairseq_cli.eval_lm",
    because="fairseq 0.12.2: a name in --model-overrides that is no option does nothing, and a "
    "missing --path ends in an AttributeError",
)
def overrides_name_options(module: PatchedModule) -> None:
    """Hand the names that the user gave to the loading of checkpoints."""

    def hold_names(cfg: FairseqConfig, *args: Any, **kwargs: Any) -> ContextManager[None]:
        common = getattr(cfg, "common_eval", cfg)
        if not getattr(common, "path", None):
            raise OptionError("--path is missing; allowed: a checkpoint file")
        overrides = ast.literal_eval(getattr(common, "model_overrides", None) or "{}")
        return holding(override_names, tuple(overrides))

    call_within(module, "main", hold_names)


@patch(
    "fairseq.checkpoint_utils",
    because="fairseq 0.12.2: a name in --model-overrides that is no option does nothing",
)
def overrides_are_looked_up(module: PatchedModule) -> None:
    """Compare the names with a checkpoint's configuration while it is read."""

    def check_names(cfg: Any, overrides: dict[str, Any]) -> None:
        # check before they are applied: fairseq adds names that are not there
        if override_names.get():
            check_override_names(path_being_read.get(), cfg)

    call_before(module, "overwrite_args_by_name", check_names)


def check_override_names(path: str, cfg: Any) -> None:
    """Raise OptionError for a name that neither the configuration nor a class it names has."""
    present = set(_option_names(cfg))
    values = {group: stored_name({"cfg": cfg}, group) for group in ("task", "model")}
    values["arch"] = values["model"]
    for entry in chosen_classes(values):
        if not is_stock(entry):
            return  # it may read options that it does not declare
        # an option that was added after the checkpoint was written
        present |= declared_options(entry)
    for name in sorted(set(override_names.get()) - present):
        raise OptionError(
            f"--model-overrides: {name!r} is no option in the configuration of {path}"
            f"{hint_for(name, present)}; allowed: those it was trained with"
        )


def _option_names(section: Any) -> Iterator[str]:
    """Yield the names in a configuration, also in its groups: omegaconf, dict or Namespace."""
    items = section.items_ex(resolve=False) if hasattr(section, "items_ex") else None
    if items is None:
        items = section.items() if hasattr(section, "items") else vars(section).items()
    for name, value in items:
        yield str(name)
        if hasattr(value, "items") or type(value).__name__ == "Namespace":
            yield from _option_names(value)
