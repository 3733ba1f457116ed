"""`fairseq-ext run COMMAND ...`: a stock fairseq command with the patches active.

The commands that pip installs (`fairseq-train` ...) do the same where Python reads the .pth files
of its environment. It does not for folders named by PYTHONPATH, where `pip install --target` puts
things; there `python -m fairseq_ext run fairseq-train ...` works.
"""

import argparse
import importlib
import sys

from ...compat import activate, require_fairseq
from .. import UsageError

COMMANDS = (
    "fairseq-eval-lm",
    "fairseq-generate",
    "fairseq-hydra-train",
    "fairseq-interactive",
    "fairseq-preprocess",
    "fairseq-score",
    "fairseq-train",
    "fairseq-validate",
)


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
    name = args.command[len("fairseq-") :].replace("-", "_")  # fairseq-eval-lm -> eval_lm
    command = importlib.import_module(f"fairseq_cli.{name}")
    sys.argv = [args.command, *args.arguments]
    command.cli_main()
    return 0
