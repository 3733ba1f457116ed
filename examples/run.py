#!/usr/bin/env python3
"""Run an experiment: literal commands that a .toml file lists.

    python examples/run.py                                     names the experiments
    python examples/run.py dual/multi30k                       names its systems
    python examples/run.py dual/multi30k prepare --raw RAW     makes the data
    python examples/run.py dual/multi30k dual 1 2              trains and scores, seeds 1 and 2
    python examples/run.py dual/multi30k dual 1 --raw RAW      makes the data first, if need be
    python examples/run.py dual/multi30k report 1 2            compares what was scored
    python examples/run.py dual/own report 1 --versus dual/recipe
                                                               and with those of another
    python examples/run.py dual/multi30k dual 1 --print        only prints the commands
    python examples/run.py dual/multi30k dual 1 -- --fp16      more options for fairseq-train
    python examples/run.py dual/multi30k report 1 -- --fp16    compares runs with such options
    python examples/run.py dual/multi30k 'stock.*' 1           every system of such a name

What is done is not done again; a command that was stopped goes on where it was.
"""

import re
import shlex
import signal
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace, RawDescriptionHelpFormatter
from pathlib import Path

from experiments import UsageError
from experiments.definition import Experiment, names, read_experiment
from experiments.execution import (
    ENVIRONMENT,
    ROOT,
    TRAINING,
    CommandError,
    Run,
    data_places,
    in_order,
    placed,
    short,
    stop,
)
from experiments.preparation import prepare
from experiments.scoring_checks import check_scoring

from fairseq_ext.compat.user_errors import BROKEN_PIPE_STATUS, discard_stdout

DOCS = ROOT / "docs" / "results" / "data"
OPTION_NAME = re.compile(r"--[a-z][\w-]*")


def positive(text: str) -> int:
    """Return the value of an option. Raises ArgumentTypeError unless it is at least 1."""
    value = int(text)
    if value < 1:
        raise ArgumentTypeError(f"{text}: allowed: 1 or more")
    return value


def arguments(words: list[str]) -> Namespace:
    """Return the arguments of the command line; `options` are the words after --."""
    place = words.index("--") if "--" in words else len(words)
    parser = ArgumentParser(
        prog="run.py", description=__doc__, formatter_class=RawDescriptionHelpFormatter
    )
    parser.add_argument("experiment", metavar="EXPERIMENT", nargs="?", help="name or .toml file")
    parser.add_argument(
        "system",
        metavar="SYSTEM",
        nargs="?",
        help="name of a system or a pattern such as 'stock.*', or prepare, or report",
    )
    parser.add_argument("seeds", metavar="SEED", type=int, nargs="*", help="random seeds")
    parser.add_argument("--raw", type=Path, help="folder with the raw data")
    parser.add_argument("--data", type=Path, help="folder of the data (default: data-bin/NAME)")
    parser.add_argument("--runs", type=Path, help="folder of the runs (default: runs/NAME)")
    parser.add_argument(
        "--workers", type=positive, default=2, help="processes of fairseq-preprocess (default 2)"
    )
    parser.add_argument(
        "--force",
        action="store_true",
        help="replace data that was made of something else; report --store: values of other runs",
    )
    parser.add_argument(
        "--print", action="store_true", help="print the shell commands and run nothing"
    )
    parser.add_argument(
        "--store", action="store_true", help="report: write the values to docs/results/data"
    )
    parser.add_argument(
        "--leave-out",
        metavar="METRIC",
        action="append",
        default=[],
        help="report: leave a metric out, such as 'ms per update' of a machine that was not idle",
    )
    parser.add_argument(
        "--versus",
        metavar="EXPERIMENT",
        action="append",
        default=[],
        help="report: compare with the systems of the same label in another experiment, too, in "
        "data-bin/NAME and runs/NAME",
    )
    args = parser.parse_args(words[:place])
    args.options = words[place + 1 :]
    return args


def describe(experiment: Experiment) -> None:
    """Print what an experiment needs and has."""
    print(f"{experiment.title}\n{experiment.path}\n\nRAW:     {' '.join(experiment.raw)}\nSYSTEM:")
    for system in experiment.systems.values():
        of_seeds = f", {system.seeds} seeds" if system.seeds > 1 else ""
        after = f" (after {', '.join(system.needs)}{of_seeds})" if system.needs else ""
        print(f"  {system.name}{after}")


def check_options(experiment: Experiment, args: Namespace) -> None:
    """Raise UsageError where an option, or those after --, would do nothing."""
    is_report = args.system == "report"
    for option, does_something, needed in (
        ("--store", is_report, "report"),
        ("--leave-out", is_report, "report"),
        ("--versus", is_report, "report"),
        ("--force", args.store or args.raw is not None, "--raw or report --store"),
        ("--raw", args.system and not is_report, "prepare or a SYSTEM"),
        ("--print", args.system and not is_report, "prepare or a SYSTEM"),
    ):
        if getattr(args, option.strip("-").replace("-", "_")) and not does_something:
            raise UsageError(f"{option} does nothing without {needed}")
    if args.system == "prepare" and args.seeds:
        raise UsageError(f"SEED {args.seeds[0]} does nothing with prepare: data have no seed")
    if not args.options or is_report:  # reports on runs that have these options
        return
    named = experiment.matching(args.system) if args.system not in (None, "prepare") else []
    trainings = [text for name in named for text in experiment.system(name).train]
    if not any(text.startswith(TRAINING) for text in trainings):
        raise UsageError(
            f"-- {' '.join(args.options)}: {args.system or 'no SYSTEM'} runs no {TRAINING}; "
            "name a system that does"
        )


def check_folders(args: Namespace) -> None:
    """Raise UsageError for folders that fairseq's options take for several."""
    for option, folder in (("--data", args.data), ("--runs", args.runs)):
        for sign in ":,":
            if sign in short(folder):
                raise UsageError(
                    f"{option} {folder}: fairseq takes what stands on both sides of {sign!r} for "
                    "two paths; allowed: a folder without colons and commas"
                )


def check_seeds(args: Namespace) -> None:
    """Raise UsageError where no random seed is named."""
    if not args.seeds:
        raise UsageError("SEED is missing: name at least one")


def print_commands(experiment: Experiment, args: Namespace) -> None:
    """Print the shell lines of the data, or of a system with all that it needs.

    Those of a system have the data before them if RAW is named.
    """
    for name, value in ENVIRONMENT.items():
        print(f"export {name}={value}")
    print(f"cd {shlex.quote(str(ROOT))}")
    if args.system == "prepare" or args.raw is not None:
        print(f"mkdir -p {shlex.quote(short(args.data))}")
        raw = args.raw or Path("RAW")
        for command in experiment.prepare:
            print(placed(command, data_places(raw, args.data, args.workers)))
    if args.system == "prepare":
        return
    named = experiment.matching(args.system)
    check_seeds(args)
    for system, seed in in_order(experiment, named, args.seeds):
        is_named = system.name in named and seed in args.seeds
        run = Run(system, seed, args.data, args.runs, args.options if is_named else ())
        print(f"mkdir -p {shlex.quote(short(run.folder))}")
        for stage in ("train", "evaluate") if is_named else ("train",):
            for line in run.lines(stage):
                print(line)


def run_systems(experiment: Experiment, args: Namespace) -> None:
    """Make the data if RAW is named, train what the systems need, train them, and score them."""
    check_seeds(args)
    named = experiment.matching(args.system)
    for name in named:
        check_scoring(experiment.system(name))
    if args.raw is not None:
        prepare(experiment, args.raw, args.data, args.workers, args.force)
    for system, seed in in_order(experiment, named, args.seeds):
        is_named = system.name in named and seed in args.seeds
        run = Run(system, seed, args.data, args.runs, args.options if is_named else ())
        run.train()
        if is_named:
            run.evaluate()
            print(f"done: {run.folder}", flush=True)


def perform(args: Namespace) -> None:
    """Do what the arguments say. Raises UsageError."""
    if not args.experiment:
        print("\n".join(names()))
        return
    experiment = read_experiment(args.experiment)
    try:
        perform_experiment(experiment, args)
    except CommandError as error:
        raise UsageError(f"{error}{variables_behind(experiment, error.last)}") from error


def perform_experiment(experiment: Experiment, args: Namespace) -> None:
    """Do what the arguments say of an experiment. Raises UsageError."""
    check_options(experiment, args)
    args.data = args.data or ROOT / "data-bin" / experiment.name
    args.runs = args.runs or ROOT / "runs" / experiment.name
    if args.system not in (None, "report"):
        check_folders(args)
    if not args.system:
        describe(experiment)
    elif args.print:
        print_commands(experiment, args)
    elif args.system == "prepare":
        if args.raw is None:
            raise UsageError(f"--raw is missing: a folder with {' '.join(experiment.raw)}")
        prepare(experiment, args.raw, args.data, args.workers, args.force)
    elif args.system == "report":
        from experiments.results import report

        if not args.seeds:
            raise UsageError("SEED is missing: name those to report on")
        report(
            experiment, args.data, args.runs, sorted(set(args.seeds)), args.leave_out,
            DOCS if args.store else None, args.options, args.force,
            [read_experiment(name) for name in args.versus],
        )  # fmt: skip
    else:
        run_systems(experiment, args)


def variables_behind(experiment: Experiment, line: str) -> str:
    """Return a line that says which variables hold the options that an error names, or ""."""
    named = [
        f"{option} is set by {' and '.join(experiment.settings[option])}"
        for option in dict.fromkeys(OPTION_NAME.findall(line))
        if option in experiment.settings
    ]
    return f"\nin the variables of {experiment.path}: {'; '.join(named)}" if named else ""


def main(words: list[str]) -> None:
    """Run; show a problem that the user can solve without a traceback."""
    signal.signal(signal.SIGTERM, stop)
    args = arguments(words)
    try:
        perform(args)
        sys.stdout.flush()  # what is printed may still wait for its reader
    except UsageError as error:
        sys.exit(f"run.py: {error}")
    except BrokenPipeError:
        # the reader of a pipe, such as head, has seen enough; end as a signal would
        discard_stdout()
        sys.exit(BROKEN_PIPE_STATUS)


if __name__ == "__main__":
    main(sys.argv[1:])
