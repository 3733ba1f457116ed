"""`fairseq-ext run COMMAND ...`: a stock fairseq command with the patches active.

The commands that pip installs (`fairseq-train` ...) do the same where Python reads the .pth files
of its environment. It does not for folders named by PYTHONPATH, where `pip install --target` puts
things; there `python -m fairseq_ext run fairseq-train ...` works.
"""

import argparse
import importlib
import sys

from ...compat import activate, require_fairseq
from ...compat.command_line.entry_points import PROGRAMS
from .. import UsageError

# {command: its module}
COMMANDS = {command: module for module, command in sorted(PROGRAMS.items())}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add COMMAND and everything after it, options included."""
    parser.add_argument("command", metavar="COMMAND", help="one of " + ", ".join(COMMANDS))
    parser.add_argument(
        "arguments", nargs=argparse.REMAINDER, metavar="...", help="arguments of COMMAND"
    )


def launch_command(args: argparse.Namespace) -> int:
    """Run the command in this process and return 0; its own errors pass through.

    Raises UsageError for a command that fairseq does not have.
    """
    if args.command not in COMMANDS:
        raise UsageError(f"COMMAND {args.command!r} is unknown; allowed: {', '.join(COMMANDS)}")
    activate()  # before fairseq is imported: patches act on the import
    require_fairseq()
    # the light entry point left a package object without systems: a --user-dir must import it anew
    package = __name__.partition(".")[0]
    if sys.modules[package].__spec__ is None:
        del sys.modules[package]
    command = importlib.import_module(COMMANDS[args.command])
    sys.argv = [args.command, *args.arguments]
    command.cli_main()
    return 0
