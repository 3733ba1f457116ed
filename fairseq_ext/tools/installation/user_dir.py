"""`fairseq-ext user-dir`: the folder of this package."""

from argparse import ArgumentParser, Namespace
from pathlib import Path


def add_arguments(parser: ArgumentParser) -> None:
    """Add no options."""


def print_user_dir(args: Namespace) -> int:
    """Print the folder; scripts write `--user-dir "$(fairseq-ext user-dir)"`."""
    print(Path(__file__).resolve().parents[2])
    return 0
