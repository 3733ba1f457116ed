"""Compare validation losses of fast ways of computing with those of stock fairseq's way.

    python benchmarks/precision.py data-bin/multi30k/bin -s de -t en
    python benchmarks/precision.py DATA -s de -t en --system multiway --way bf16

DATA is made by fairseq-preprocess with one dictionary for both languages. Every system is trained
once in each way, from the same seed, on the same batches. `literal` comes first and is the
reference of the others: single precision, with products, criterion and optimiser as in stock
fairseq. `seed` is `literal` with another seed, which shows the effect of chance. Finished trainings
are not repeated. Writes OUTPUT.json, .md and .png, and the logs to OUTPUT.runs.
"""

import os
import shlex
import subprocess
import sys
from argparse import Namespace
from pathlib import Path
from typing import Dict, List, Mapping, Optional, Sequence, Tuple

from speed import REPOSITORY, cli, translation
from speed.families import CHUNKED, PLAIN, SHARED, SMOOTHED, multiway, plain, routed
from speed.report import (
    Cell,
    Record,
    circumstances,
    heading,
    page_around,
    panels,
    publish,
    settings_of,
    table,
)

from fairseq_ext.tools import AddValues, UsageError
from fairseq_ext.tools.curves.figures import save
from fairseq_ext.tools.curves.training_log import Point, read_run

# {way: (environment, options of fairseq-train)}
LITERAL = "literal"
WAYS: Dict[str, Tuple[Dict[str, str], str]] = {
    LITERAL: ({"FAIRSEQ_EXT_ONEDNN": "0"}, "--optimizer adam"),
    "seed": ({"FAIRSEQ_EXT_ONEDNN": "0"}, "--optimizer adam --seed 2"),
    "fused": ({}, "--optimizer fused_adam"),
    "bf16": ({}, "--optimizer fused_adam --bf16"),
    "amp": ({}, "--optimizer fused_adam --amp"),
}
TASKS = {"dual": "dual_translation", "multiway": "multiway_translation", "routed": "routed_mtl"}
WARMUP = 15  # per cent of the updates
NEVER = 1000000
ALLOWED = 0.5  # per cent


def parse(arguments: Optional[Sequence[str]] = None) -> Namespace:
    """Return the options, checked. Raises UsageError naming a wrong one."""
    parser = cli.make_parser(__doc__)
    translation.add_data(parser)
    cli.add_systems(parser, SHARED)
    ways = [way for way in WAYS if way != LITERAL]
    parser.add_argument("--way", nargs="+", action=AddValues, choices=ways, default=ways,
                        metavar="NAME",
                        help=f"variants besides {LITERAL}, "
                             f"of {', '.join(ways)} (default: all)")  # fmt: skip
    parser.add_argument("--lr", type=float, default=2e-3, help="learning rate (default 0.002)")
    cli.add_device(parser)
    cli.add_page(parser)
    cli.add_numbers(parser, **{**cli.SIZES, "updates": 2000})
    cli.add_flags(parser)
    args = parser.parse_args(arguments)
    cli.check_models(args)
    cli.check_corpus(args)
    args.output = cli.chosen_output(args, "precision")
    if not args.data.is_dir():
        raise UsageError(f"DATA {args.data}: is not a folder")
    return args


def command(args: Namespace, system: str, way: str, run: Path) -> List[str]:
    """Return the fairseq-train command of a system that is computed one way."""
    pair = f"{args.source_lang}-{args.target_lang}"
    both = f"{pair},{args.target_lang}-{args.source_lang}"
    criterion = SMOOTHED if way in (LITERAL, "seed") else CHUNKED
    model = {
        "dual": f"--arch dual_transformer {plain(args)} {criterion}",
        "multiway": f"{multiway(args)} {PLAIN}",
        "routed": f"{routed(args)} {PLAIN}",
    }[system]
    words = ["fairseq-train", args.data, "--user-dir", REPOSITORY / "fairseq_ext"]
    words += ["--task", TASKS[system], "--lang-pairs", both if system == "dual" else pair]
    words += [*model.split(), "--schedule", "joint", "--lr", args.lr, "--clip-norm", 1]
    words += ["--seed", 1, "--max-update", args.updates, "--lr-scheduler", "polynomial_decay"]
    words += ["--total-num-update", args.updates, "--warmup-updates", args.updates * WARMUP // 100]
    words += ["--max-tokens", args.max_tokens, "--validate-interval", NEVER]
    words += ["--validate-interval-updates", max(1, args.updates // 4)]
    words += ["--no-save", "--save-dir", run, "--log-format", "simple", "--log-interval", 50]
    words += ["--no-progress-bar", *WAYS[way][1].split(), *shlex.split(args.flags)]
    return [*map(str, words), *(["--cpu"] if args.device == "cpu" else [])]


def train(words: Sequence[str], log: Path, variables: Mapping[str, str]) -> None:
    """Run a fairseq command with its output in ``log``. Raises UsageError where it fails."""
    environment = {"OMP_NUM_THREADS": "1", **os.environ, **variables}
    print(f"{shlex.join(words)} > {log}", flush=True)
    with open(log, "w", encoding="utf-8") as stream:
        process = [sys.executable, "-m", "fairseq_ext", "run", *words]
        finished = subprocess.run(process, env=environment, stdout=stream, stderr=stream)
    if finished.returncode:
        tail = log.read_text(encoding="utf-8", errors="replace").splitlines()[-15:]
        raise UsageError("\n".join([f"{log}: status {finished.returncode}", *tail]))


def curve(args: Namespace, system: str, way: str) -> List[Point]:
    """Return [(updates, validation loss in bits)] of a training; it runs unless it ran before."""
    run = args.output.with_name(f"{args.output.name}.runs") / f"{system}.{way}"
    words, log, done = command(args, system, way, run), Path(f"{run}.log"), run / "command"
    text = shlex.join(words)
    if not done.is_file() or done.read_text(encoding="utf-8") != text:
        run.mkdir(parents=True, exist_ok=True)
        done.unlink(missing_ok=True)  # it is of the log that is replaced now
        train(words, log, WAYS[way][0])
        done.write_text(text, encoding="utf-8")
    return read_run(log, run.name).curves["valid", "loss"]


def difference(curves: Mapping[str, Sequence[Point]], way: str) -> float:
    """Return by how many per cent a way's last loss is above the literal one's."""
    (_, literal), (_, other) = curves[LITERAL][-1], curves[way][-1]
    return 100 * (other - literal) / literal


def markdown(record: Record) -> str:
    """Return the table of losses."""
    lines: List[List[Cell]] = []
    for system, curves in record["curves"].items():
        for way, points in curves.items():
            changed = "" if way == LITERAL else f"{difference(curves, way):+.2f}"
            lines.append([system, way, *(f"{loss:.4f}" for _, loss in points), changed])
    columns = ["system", "way", *(f"after {updates:,} updates" for updates, _ in points)]
    text = f"{heading(record)}. Validation loss in bits per token. The last column is the "
    text += f"difference from {LITERAL} in per cent; the tolerance is {ALLOWED}%.\n\n"
    return text + table([*columns, "per cent"], lines)


def draw(record: Record, path: Path) -> None:
    """Draw a panel for each system, with a line for each way."""
    figure, axes = panels(list(record["curves"]), len(record["curves"]))
    for system, curves in record["curves"].items():
        for way, points in curves.items():
            axes[system].plot(*zip(*points), marker="o", label=way)
        axes[system].set_xlabel("updates")
        axes[system].set_ylabel("validation loss, bits")
        axes[system].legend()
    save(figure, path)


def main(arguments: Optional[Sequence[str]] = None) -> None:
    """Train what was not trained before, and report."""
    args = parse(arguments)
    if args.into:
        page_around(args.into, args.output)  # its errors come before the trainings
    curves = {
        system: {way: curve(args, system, way) for way in (LITERAL, *args.way)}
        for system in args.system
    }
    settings = settings_of(args, "output", "into", "data")
    record = {**circumstances(args.device), "settings": settings, "curves": curves}
    publish(record, markdown(record), args.output, draw, args.into)


if __name__ == "__main__":
    cli.run_script(main)
