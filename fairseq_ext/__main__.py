"""The `fairseq-ext` command; `python -m fairseq_ext` is the same."""

import argparse
import importlib
import io
import itertools
import signal
import sys
from typing import Optional, Sequence

from .compat.command_line.termination_signals import exits_cleanly_on_signals
from .compat.user_errors import (
    BROKEN_PIPE_STATUS,
    FILE_ERRORS,
    INTERRUPTED_STATUS,
    discard_stdout,
    exit_message,
    exit_with,
    hint_for,
    print_error,
)
from .tools import UsageError
from .tools.commands import command_table

COMMANDS = command_table()
# the stock commands of fairseq have the handlers that they have without `fairseq-ext run`
WITH_OWN_SIGNALS = ("run",)


def version() -> str:
    """Return the version of this distribution, or what can be said where it is not installed."""
    from importlib import metadata

    try:
        return metadata.version("fairseq-ext")
    except metadata.PackageNotFoundError:
        return "(not installed; running from its folder)"


def overview() -> argparse.ArgumentParser:
    """Return the parser of the bare command: help and version, no options of sub-commands."""
    width = max(map(len, COMMANDS))
    table = []
    for group, names in itertools.groupby(COMMANDS, lambda name: COMMANDS[name].group):
        table.append(f"commands for {group}:")
        table += [f"  {name:<{width}}  {COMMANDS[name].summary}" for name in names]
    parser = argparse.ArgumentParser(
        prog="fairseq-ext",
        usage="fairseq-ext COMMAND [options]; fairseq-ext COMMAND --help",
        description="Sequence-to-sequence papers as a fairseq plugin.",
        epilog="\n".join(table),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"fairseq-ext {version()}")
    return parser


def unknown(name: str) -> str:
    """Return the message for a COMMAND that is none."""
    return f"COMMAND {name!r} is unknown{hint_for(name, COMMANDS)}; allowed: {', '.join(COMMANDS)}"


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Run the command line `arguments` (default: the process's) and return the exit status.

    2 for bad usage, as argparse does, and for a file that is not there or cannot be used, where
    UsageError or one of `FILE_ERRORS` is raised; 1 for other errors of users; otherwise what the
    sub-command returns.
    """
    argv = list(sys.argv[1:] if arguments is None else arguments)
    if not argv:
        overview().print_help(sys.stderr)
        return 2
    name, rest = argv[0], argv[1:]
    if name.startswith("-"):
        overview().parse_args(argv)
        overview().error(f"COMMAND is missing before {' '.join(argv)}")
    if name not in COMMANDS:
        overview().error(unknown(name))
    command = COMMANDS[name]
    parser = argparse.ArgumentParser(prog=f"fairseq-ext {name}", description=command.summary)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # an ASCII terminal lacks signs of tables; a result must not be lost for them
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        module = importlib.import_module(f".{command.module}", __package__)
        module.add_arguments(parser)
        function = getattr(module, command.function)
        if name not in WITH_OWN_SIGNALS:
            # Ctrl-C is an exception, see below; SIGTERM would leave what is half-written
            function = exits_cleanly_on_signals(parser.prog, function, [signal.SIGTERM])
        return function(parser.parse_args(rest))
    except UsageError as error:
        print_error(parser.prog, error, str(error))
        return 2
    except KeyboardInterrupt:
        print(f"{parser.prog}: interrupted", file=sys.stderr, flush=True)
        return INTERRUPTED_STATUS
    except BrokenPipeError:
        # the reader of a pipe, such as head, has seen enough; end as a signal would have ended us
        discard_stdout()
        return BROKEN_PIPE_STATUS
    except Exception as error:
        last = exit_message(error)
        if last is None:
            raise
        if type(error).__name__ in FILE_ERRORS:
            # stock commands end with 1 for files; those of sub-commands are arguments
            last = last._replace(status=2)
        exit_with(parser.prog, error, last)


if __name__ == "__main__":
    sys.exit(main())
