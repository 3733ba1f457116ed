"""`fairseq-ext user-dir`: the folder of this package."""

from argparse import ArgumentParser, Namespace

from ..commands import PACKAGE


def add_arguments(parser: ArgumentParser) -> None:
    """Add no options."""


def print_user_dir(args: Namespace) -> int:
    """Print the folder; scripts write `--user-dir "$(fairseq-ext user-dir)"`."""
    print(PACKAGE)
    return 0
