"""`fairseq-ext user-dir`: the folder of this package."""

from pathlib import Path


def add_arguments(parser):
    """No options."""


def run(args):
    """Print the folder; scripts write `--user-dir "$(fairseq-ext user-dir)"`."""
    print(Path(__file__).resolve().parent.parent)
    return 0
