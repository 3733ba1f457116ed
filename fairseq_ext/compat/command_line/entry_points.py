"""The commands of fairseq: they check their options first, and end in one line.

That is so on errors of the user and on signals. No folder is left that holds nothing.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import functools
import os
from typing import TYPE_CHECKING, Any, Callable, Iterator, Mapping, Sequence

from ..patch_registry import PatchedModule, patch
from ..surrounded_calls import call_before, call_within
from ..user_errors import OptionError, reports_user_errors
from .option_checks import check
from .termination_signals import exits_cleanly_on_signals

if TYPE_CHECKING:
    from fairseq.dataclass.configs import FairseqConfig

# {module of fairseq: the command that its errors name}
PROGRAMS = {
    "fairseq_cli.train": "fairseq-train",
    "fairseq_cli.generate": "fairseq-generate",
    "fairseq_cli.interactive": "fairseq-interactive",
    "fairseq_cli.validate": "fairseq-validate",
    "fairseq_cli.preprocess": "fairseq-preprocess",
    "fairseq_cli.eval_lm": "fairseq-eval-lm",
    "fairseq_cli.score": "fairseq-score",
    "fairseq_cli.hydra_train": "fairseq-hydra-train",
}


@patch(
    *PROGRAMS,
    because="fairseq 0.12.2: Ctrl-C ends in a traceback, SIGTERM without a word",
)
def commands_end_by_signals_in_one_line(module: PatchedModule) -> None:
    """Print what to do next, leave no file half-written, end by the signal."""
    module.cli_main = exits_cleanly_on_signals(PROGRAMS[module.__name__], module.cli_main)


@patch(
    *PROGRAMS,
    because="fairseq 0.12.2: what a user did wrong is shown as a traceback of fairseq's own lines",
)
def commands_end_in_one_line(module: PatchedModule) -> None:
    """End on an error of the user with one line that names it."""
    program = PROGRAMS[module.__name__]
    command = module.cli_main
    if program == "fairseq-hydra-train":
        command = _with_full_errors(command)
    module.cli_main = reports_user_errors(program, command)


def _with_full_errors(command: Callable[[], Any]) -> Callable[[], Any]:
    """Return `command` so that hydra raises errors; it would print a short traceback and exit."""

    def run() -> Any:
        """Run the command with hydra's variable set."""
        with _environment("HYDRA_FULL_ERROR", "1"):
            return command()

    return run


@contextlib.contextmanager
def _environment(name: str, value: str) -> Iterator[None]:
    """Set an environment variable for the length of a block."""
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


@patch(
    "fairseq.options",
    because="fairseq 0.12.2 takes --update-freq 0, --beam 0, --batch-size -3 and the like: they "
    "end in an error that names no option, or in a wrong result without a word",
)
def options_are_in_their_ranges(module: PatchedModule) -> None:
    """Check every option that has a range as soon as it is read."""
    parse, parser_of_preprocess = module.parse_args_and_arch, module.get_preprocessing_parser

    @functools.wraps(parse)
    def parse_args_and_arch(
        parser: argparse.ArgumentParser,
        input_args: Sequence[str] | None = None,
        parse_known: bool = False,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        try:
            parsed = parse(parser, input_args, parse_known, *args, **kwargs)
        except KeyError as error:
            # fairseq looks up the registries with None where an option is missing
            if error.args != (None,):
                raise
            raise OptionError(
                "--task is missing; allowed: the tasks that `fairseq-train --help` lists"
            ) from error
        except RuntimeError as error:
            if error.args:  # fairseq's own, for a missing --arch, says nothing
                raise
            raise OptionError(
                "--arch is missing; allowed: the architectures that `fairseq-train --help` lists"
            ) from error
        check(vars(parsed[0] if parse_known else parsed), parser.get_default)
        return parsed

    def get_preprocessing_parser(*args: Any, **kwargs: Any) -> argparse.ArgumentParser:
        parser = parser_of_preprocess(*args, **kwargs)
        read = parser.parse_args

        def parse_args(*args: Any, **kwargs: Any) -> argparse.Namespace:
            parsed = read(*args, **kwargs)
            check(vars(parsed))
            return parsed

        parser.parse_args = parse_args  # fairseq-preprocess reads with the parser itself
        return parser

    module.parse_args_and_arch = parse_args_and_arch
    module.get_preprocessing_parser = get_preprocessing_parser


@patch(
    "fairseq.dataclass.utils",
    because="fairseq 0.12.2 evaluates `--lr abc` as Python: a NameError",
)
def lists_of_numbers_are_numbers(module: PatchedModule) -> None:
    """Refuse by name what is neither a number nor a list of numbers; words need no quotes."""
    stock = module.eval_str_list

    def eval_str_list(x: Any, x_type: type = float) -> list[Any] | None:
        try:
            return stock(x, x_type)
        except (NameError, SyntaxError, ValueError, TypeError) as error:
            if x_type is str:  # [a,b], as the shell leaves it of fairseq's own examples
                return [word.strip() for word in x.strip("[]").split(",")]
            kind = "whole number" if x_type is int else "finite number"
            raise argparse.ArgumentTypeError(
                f"{x!r} is not allowed; allowed: a {kind}, or several with commas between them"
            ) from error

    module.eval_str_list = eval_str_list


@patch(
    "fairseq_cli.hydra_train", because="fairseq 0.12.2, as before: hydra has a reader of its own"
)
def hydra_options_are_in_their_ranges(module: PatchedModule) -> None:
    """Check the options of a training that hydra configured."""

    def check_options(cfg: FairseqConfig, **kwargs: Any) -> None:
        whole = copy.deepcopy(cfg)  # add_defaults writes into it
        module.add_defaults(whole)  # `${...}` may name options that have their defaults
        groups = module.OmegaConf.to_container(whole, resolve=True, enum_to_str=True)
        check(values_of_hydra(groups))

    call_before(module, "_hydra_main", check_options)


def values_of_hydra(groups: Mapping[Any, object]) -> dict[str, object]:
    """Return {option: value} of a configuration {group: section}; a group's value is its choice.

    Options without a value (`???`) are left out: a training need not read them.
    """
    values: dict[str, object] = {}
    for group, section in groups.items():
        if isinstance(section, argparse.Namespace):  # of a class without a dataclass
            section = vars(section)
        if isinstance(section, Mapping):
            values.update((str(name), value) for name, value in section.items() if value != "???")
            # as the command line has it: {"optimizer": "adam"}
            if section.get("_name") is not None:
                values[str(group)] = section["_name"]
    return values


@patch(
    "fairseq_cli.train",
    because="fairseq 0.12.2 makes --save-dir before it looks at the data",
)
def no_empty_save_dir_is_left(module: PatchedModule) -> None:
    """Remove the folders that a training made and left empty because it could not start."""

    @contextlib.contextmanager
    def removing_folders(cfg: FairseqConfig, *args: Any, **kwargs: Any) -> Iterator[None]:
        folder = getattr(getattr(cfg, "checkpoint", cfg), "save_dir", "") or ""
        missing = _missing_folders(folder)  # asked before fairseq makes them
        try:
            yield
        except Exception:
            with contextlib.suppress(OSError):  # not empty, or not there
                for path in missing:  # the innermost first
                    os.rmdir(path)
            raise

    call_within(module, "main", removing_folders)


@patch(
    "fairseq_cli.train",
    because="fairseq 0.12.2: without --optimizer the training ends in an AttributeError",
)
def optimizer_is_there(module: PatchedModule) -> None:
    """Refuse a training without an optimizer; other programs may read its options without one."""

    def check_optimizer(cfg: FairseqConfig, *args: Any, **kwargs: Any) -> None:
        if getattr(cfg, "optimizer", None) is None:
            raise OptionError("--optimizer is missing; allowed: for example --optimizer adam")

    call_before(module, "main", check_optimizer)


def _missing_folders(path: str) -> list[str]:
    """Return the folders that `os.makedirs(path)` would make, the innermost first."""
    missing = []
    while path and not os.path.exists(path):
        missing.append(path)
        path = os.path.dirname(path)
    return missing
