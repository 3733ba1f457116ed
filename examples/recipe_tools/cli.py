"""What the scripts of all recipes have in common: their arguments, and how errors are shown."""

import argparse
import signal
import sys
from pathlib import Path

from . import RecipeError

ARGUMENTS = {
    "raw": {"metavar": "RAW", "type": Path, "help": "folder with the raw data"},
    "data": {"metavar": "DATA", "type": Path, "help": "folder written by prepare.py"},
    "runs": {"metavar": "RUNS", "type": Path, "help": "folder of the training runs"},
    "system": {
        "metavar": "SYSTEM",
        "help": "system, one of those that the docstring of train.py lists",
    },
    "seed": {"metavar": "SEED", "type": int, "help": "random seed of the run"},
    "seeds": {"metavar": "SEED", "type": int, "nargs": "+", "help": "seeds of the runs"},
    "--recipe": {"default": "multi30k", "help": "name of the settings or a .cfg file"},
    "--workers": {"type": int, "default": 2, "help": "worker processes of fairseq-preprocess"},
    "--force": {"action": "store_true", "help": "replace DATA that was made from other inputs"},
    "--dry-run": {"action": "store_true", "help": "print the command and do not run it"},
    "--into": {
        "metavar": "FILE.md",
        "type": Path,
        "help": "file whose marked part is replaced by the tables",
    },
}


def make_parser(doc, *names):
    """Return a parser with the arguments `names` of ARGUMENTS; scripts add their others."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    for name in names:
        parser.add_argument(name, **ARGUMENTS[name])
    return parser


def parse_with_extra(parser, argv):
    """Return the arguments, with the words after `--` as the list `extra`.

    By hand: argparse gives options after -- to no positional that has begun before.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    script_words = words[: words.index("--")] if "--" in words else words
    args = parser.parse_args(script_words)
    args.extra = words[len(script_words) + 1 :]
    return args


def script(main):
    """Run a script; show a problem that the user can solve without a traceback.

    A script that is told to stop ends like one that is interrupted: with the command it runs.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        main()
    except RecipeError as error:
        sys.exit(f"{Path(sys.argv[0]).name}: {error}")
