"""Running fairseq-train for one system and seed."""

import json
from difflib import unified_diff
from pathlib import Path

from . import RecipeError
from .cli import ARGUMENTS, make_parser, parse_with_extra
from .commands import execute, run_name, shown, user_dir
from .files import written

RECORD = "command.json"


def training_arguments(doc, argv, recipe=ARGUMENTS["--recipe"]["default"]):
    """Return the arguments of a train.py; recipe: the settings where none are named."""
    parser = make_parser(doc, "data", "runs", "system", "seed", "--recipe", "--dry-run")
    parser.set_defaults(recipe=recipe)
    parser.epilog = "What follows -- is given to fairseq-train and wins over the recipe."
    return parse_with_extra(parser, argv)


def progress(line):
    """Return a line of the log of fairseq-train that ends an epoch or a validation, or None."""
    for mark in ("| INFO | train | ", "| INFO | valid | "):
        if mark in line:
            return mark.split(" | ")[1] + " " + line.split(mark, 1)[1].strip()
    return None


def placeless(args, command):
    """Return the words of a command with placeholders for the folders."""
    places = {args.data: "DATA", args.runs: "RUNS", user_dir(): "USER_DIR"}
    words = [str(word) for word in command]
    for path, name in places.items():
        words = [word.replace(str(path), name) for word in words]
    return words


def changes_of(before, now):
    """Return the words that differ, marked + and -, each with its neighbours; empty if none do."""
    return [line for line in unified_diff(before, now, lineterm="", n=1) if line[0] in "+- "]


def check_command(args, command, run):
    """Store the command that RUN is trained with, without the places of its files.

    Raises RecipeError, with what differs, where it was begun with something else: fairseq-train
    would go on with it, or find it finished, and the results would have the wrong name.
    """
    words, record = placeless(args, command), run / RECORD
    if not record.is_file():
        with written(record) as stream:
            json.dump(words, stream, indent=1)
        return
    changes = changes_of(json.loads(record.read_text(encoding="utf-8")), words)
    if changes:
        raise RecipeError(
            f"{run} was started with other options: {' '.join(changes[2:])}; allowed: the same, "
            f"another folder RUNS, or remove {run} and start again"
        )


def check_trained(args, command, checkpoint):
    """Raise RecipeError unless the recipe still describes the training of the checkpoint.

    command: the recipe's, without what train.py was given after --, which is not compared.
    Raises RecipeError when it does not exist, or was trained with other options: it would be
    reported with settings that are not its own.
    """
    if not checkpoint.is_file():
        raise RecipeError(f"{checkpoint} does not exist; run train.py first")
    words, record = placeless(args, command), checkpoint.parent / RECORD
    if record.is_file():  # what was trained by other means is scored as it is
        before = json.loads(record.read_text(encoding="utf-8"))[: len(words)]
        changes = changes_of(before, words)
        if changes:
            raise RecipeError(
                f"{checkpoint} was trained with other options than the recipe has now: "
                f"{' '.join(changes[2:])}; allowed: the settings it was trained with, or "
                f"remove {checkpoint.parent} and train again"
            )


def train(args, command, folder, needed=None, run=None):
    """Print the command and, unless it is a dry run, run it.

    folder: the training data. needed: {words of the command that makes it: file}. run: where the
    checkpoints go, RUNS/SYSTEM.SEED where it is not named; the log is beside it, RUN.log.
    Raises RecipeError when the data or something needed is missing, or fairseq fails.
    """
    print(shown(command), flush=True)
    if args.dry_run:
        return
    if not folder.is_dir():
        name = folder.relative_to(args.data)
        raise RecipeError(f"DATA {args.data} has no folder {name}; run prepare.py first")
    for again, path in (needed or {}).items():
        if not path.is_file():
            raise RecipeError(f"{path} does not exist; run {again} first")
    run = run or args.runs / run_name(args.system, args.seed)
    run.mkdir(parents=True, exist_ok=True)
    check_command(args, command, run)
    execute(command, Path(f"{run}.log"), mode="a", show=progress)
    print(f"trained: {run}")
