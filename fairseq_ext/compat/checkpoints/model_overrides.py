"""The names in --model-overrides are looked up in the configuration of each checkpoint."""

from __future__ import annotations

import ast
import contextlib
import contextvars
import functools
import inspect
import logging
from typing import TYPE_CHECKING, Any, ContextManager, Iterator, NamedTuple

from ..command_line.chosen_classes import chosen_classes, declared_options, is_stock
from ..context_values import holding
from ..module_overlay import overlaid, overlay_names
from ..patch_registry import PatchedModule, patch
from ..surrounded_calls import call_within
from ..user_errors import OptionError, hint_for, option_of
from .changed_options import model_values, warn_of_changes
from .configurations import chosen_name, options_of, options_of_task, stored_name
from .refusals import path_being_read

if TYPE_CHECKING:
    from fairseq.dataclass.configs import FairseqConfig

logger = logging.getLogger(__name__)

# what Namespaces of models say of a task is the longest text: models read it there
LENGTHS = {"max_positions", "max_source_positions", "max_target_positions", "tokens_per_sample"}


class CommandOverrides(NamedTuple):
    """The options in --model-overrides of a command that runs.

    names: of the options. command: its name. cfg: its configuration.
    """

    names: tuple[str, ...]
    command: str
    cfg: Any


# while a command runs: fairseq's functions do not pass them on
command_overrides: contextvars.ContextVar[CommandOverrides | None] = contextvars.ContextVar(
    "overrides of a command", default=None
)
# while a checkpoint is read
_overrides: contextvars.ContextVar[dict[str, Any] | None] = contextvars.ContextVar(
    "overrides of a checkpoint", default=None
)


@contextlib.contextmanager
def overrides_of(cfg: FairseqConfig, command: str) -> Iterator[None]:
    """Let checkpoints that are read meanwhile be compared with the --model-overrides of a command.

    Raises OptionError without --path, and names --path where one of its files is missing.
    """
    common = getattr(cfg, "common_eval", cfg)
    path = getattr(common, "path", None)
    if not path:
        raise OptionError("--path is missing; allowed: a checkpoint file")
    overrides = ast.literal_eval(getattr(common, "model_overrides", None) or "{}")
    try:
        with holding(command_overrides, CommandOverrides(tuple(overrides), command, cfg)):
            yield
    except FileNotFoundError as error:
        if error.filename is None or error.filename not in path.split(":"):
            raise
        raise FileNotFoundError(2, error.strerror, f"--path {error.filename}") from error  # ENOENT


@patch(
    "fairseq_cli.generate",
    "fairseq_cli.interactive",
    "fairseq_cli.validate",
    "fairseq_cli.eval_lm",
    because="fairseq 0.12.2: a name in --model-overrides that is no option does nothing, nor does "
    "one that the command reads from its own command line; a missing --path ends in an "
    "AttributeError",
)
def overrides_name_options(module: PatchedModule) -> None:
    """Hand the names that the user gave to the loading of checkpoints."""
    command = "fairseq-" + module.__name__.rpartition(".")[2].replace("_", "-")

    def overrides(cfg: FairseqConfig, *args: Any, **kwargs: Any) -> ContextManager[None]:
        return overrides_of(cfg, command)

    call_within(module, "main", overrides)


@patch(
    "fairseq.checkpoint_utils",
    because="fairseq 0.12.2: a name in --model-overrides that is no option does nothing, and a "
    "value with which a model computes something else than in its training is taken in silence",
)
def overrides_are_looked_up(module: PatchedModule) -> None:
    """Compare the overrides with a checkpoint's configuration while it is read."""
    stock, stock_read = module.overwrite_args_by_name, module.load_checkpoint_to_cpu
    stock_load = module.load_model_ensemble_and_task
    load = overlaid(module, "torch", "load") or module.torch.load

    @functools.wraps(stock)
    def overwrite_args_by_name(cfg: Any, overrides: dict[str, Any]) -> Any:
        path = path_being_read.get()
        # check before they are applied: fairseq adds names that are not there
        check_override_names(path, cfg)
        check_effects(path, cfg, overrides)
        stored = model_values(cfg)
        returned = stock(cfg, overrides)
        warn_of_changes(path, stored, model_values(cfg))
        return returned

    def load_and_compare(*args: Any, **options: Any) -> Any:
        """Load a checkpoint; compare one of fairseq before 0.10, whose options have no groups."""
        state = load(*args, **options)
        settings = state.get("args") if isinstance(state, dict) else None
        overrides = _overrides.get()
        if settings is None or not overrides or state.get("cfg") is not None:
            return state
        path = path_being_read.get()
        check_override_names(path, settings)
        check_effects(path, settings, overrides)
        stored = model_values(settings)
        present = {name: overrides.get(name, value) for name, value in (stored or {}).items()}
        warn_of_changes(path, stored, present)
        return state

    @functools.wraps(stock_read)
    def load_checkpoint_to_cpu(
        path: str, arg_overrides: Any = None, *args: Any, **options: Any
    ) -> Any:
        with holding(_overrides, arg_overrides):
            return stock_read(path, arg_overrides, *args, **options)

    @functools.wraps(stock_load)
    def load_model_ensemble_and_task(
        filenames: Any, arg_overrides: Any = None, task: Any = None, *args: Any, **options: Any
    ) -> Any:
        if task is not None and command_overrides.get() is None:
            warn_beside_task(arg_overrides or {}, task)
        return stock_load(filenames, arg_overrides, task, *args, **options)

    module.overwrite_args_by_name = overwrite_args_by_name
    module.load_model_ensemble_and_task = load_model_ensemble_and_task
    module.load_checkpoint_to_cpu = load_checkpoint_to_cpu
    overlay_names(module, "torch", load=load_and_compare)


def warn_beside_task(overrides: dict[str, Any], task: Any) -> None:
    """Warn of a folder or languages in `arg_overrides` that a given task does not have."""
    settings = options_of_task(task)
    for name in ("data", "source_lang", "target_lang"):
        if name in overrides and name in settings and overrides[name] != settings[name]:
            logger.warning(
                f"arg_overrides: {name} {overrides[name]} does nothing beside a task, which has "
                f"{settings[name]}; allowed: another task, or none"
            )


def check_override_names(path: str, cfg: Any) -> None:
    """Raise OptionError for a name that neither the configuration nor a class it names has."""
    running = command_overrides.get()
    if running is None or not running.names:
        return
    present = set(_option_names(cfg))
    state = {"cfg": cfg} if hasattr(cfg, "items") else {"args": cfg}
    values = {group: stored_name(state, group) for group in ("task", "model")}
    values["arch"] = values["model"]
    for entry in chosen_classes(values):
        if not is_stock(entry):
            return  # it may read options that it does not declare
        # an option that was added after the checkpoint was written
        present |= declared_options(entry)
    for name in sorted(set(running.names) - present):
        raise OptionError(
            f"--model-overrides: {name!r} is no option in the configuration of {path}"
            f"{hint_for(name, present)}; allowed: those it was trained with"
        )


def check_effects(path: str, cfg: Any, overrides: dict[str, Any]) -> None:
    """Raise OptionError for an option that the command reads from its own command line.

    One that has the same value there may stay.
    """
    running = command_overrides.get()
    values = model_values(cfg)
    if running is None or values is None or not running.names:
        return
    name_of_model = stored_name({"cfg": cfg} if hasattr(cfg, "items") else {"args": cfg}, "model")
    read = LENGTHS | {name.rpartition(".")[2] for name in values}
    for entry in chosen_classes({"model": name_of_model, "arch": name_of_model}):
        read |= declared_options(entry)
    read |= _names_beside_the_model(cfg, running)
    for name in running.names:
        value = overrides.get(name)
        if name in read or (isinstance(value, dict) and name in ("model", "task", "criterion")):
            continue
        is_known, present = _value_of_command(running.cfg, name)
        if is_known and str(present) == str(value):
            continue
        option = f"{running.command} {value}" if name == "data" else option_of(name, value)
        if name == "arch" or not is_known:
            option = "leave it out"
        raise OptionError(
            f"--model-overrides: {name!r} is no option of the model in {path}, and does nothing "
            f"in {running.command}; allowed: {option}"
        )


def _names_beside_the_model(cfg: Any, running: CommandOverrides) -> set[str]:
    """Return the options that a command reads from a checkpoint beside those of the model."""
    groups: tuple[str, ...] = ()
    if running.command == "fairseq-validate":
        groups = ("task", "criterion")
    elif running.command == "fairseq-generate" and _reads_stored_task(running.cfg):
        groups = ("task",)
    names: set[str] = set()
    for group in groups:
        section = cfg.get(group) if hasattr(cfg, "items") else cfg
        is_group = hasattr(section, "items")
        names |= set(options_of(section)) if is_group else set()
        registered = chosen_name(section, group)
        for entry in chosen_classes({group: registered}):
            names |= declared_options(entry)
    return names - {"_name"}


def _reads_stored_task(cfg: Any) -> bool:
    """Return True if the data of a command's task are read as the checkpoint says."""
    name = chosen_name(getattr(cfg, "task", cfg), "task")
    return any(
        "task_cfg" in inspect.signature(entry.load_dataset).parameters  # type: ignore[attr-defined]
        for entry in chosen_classes({"task": name})
    )


def _value_of_command(cfg: Any, name: str) -> tuple[bool, Any]:
    """Return whether the configuration of a command has an option, and its value."""
    if not hasattr(cfg, "items"):
        return hasattr(cfg, name), getattr(cfg, name, None)
    if name in ("task", "criterion", "optimizer", "lr_scheduler", "scoring", "bpe", "tokenizer"):
        return name == "task", chosen_name(cfg.get(name), name)
    for group in ("task", *cfg):
        section = cfg.get(group)
        if group != "model" and section is not None and not isinstance(section, str):
            options = options_of(section)
            if name in options:
                return True, options[name]
    return False, None


def _option_names(section: Any) -> Iterator[str]:
    """Yield the names in a configuration, also in its groups: omegaconf, dict or Namespace."""
    items = section.items_ex(resolve=False) if hasattr(section, "items_ex") else None
    if items is None:
        items = section.items() if hasattr(section, "items") else vars(section).items()
    for name, value in items:
        yield str(name)
        if hasattr(value, "items") or type(value).__name__ == "Namespace":
            yield from _option_names(value)
