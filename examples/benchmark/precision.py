"""Compare validation losses of fast ways of computing with those of stock fairseq's way.

    python examples/benchmark/precision.py data-bin/multi30k/bin -s de -t en
    python examples/benchmark/precision.py DATA -s de -t en --system multiway --way bf16

DATA is made by fairseq-preprocess with one dictionary for both languages, as by
examples/dual/prepare.py. Every system is trained once in each way, from the same seed, on the same
batches. `literal` comes first and is the reference of the others: single precision, with products,
criterion and optimiser as in stock fairseq. `seed` is `literal` with another seed, which shows the
effect of chance. Finished trainings are not repeated. Writes OUTPUT.json, .md and .png, and the
logs to OUTPUT.runs.
"""

import argparse
import shlex
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from recipe_tools import RecipeError
from recipe_tools.cli import script
from recipe_tools.commands import REPORTING, annealing, execute, shown, user_dir
from recipe_tools.curves import panels, save, validation_curve
from recipe_tools.training import progress
from speed import REPOSITORY
from speed.cli import add_device, add_sizes, check_sizes, chosen_device
from speed.families import CHUNKED, PLAIN, SHARED, SMOOTHED, multiway, plain, routed

# {way: (environment, options of fairseq-train)}
LITERAL = "literal"
WAYS = {
    LITERAL: ({"FAIRSEQ_EXT_ONEDNN": "0"}, "--optimizer adam"),
    "seed": ({"FAIRSEQ_EXT_ONEDNN": "0"}, "--optimizer adam --seed 2"),
    "fused": ({}, "--optimizer fused_adam"),
    "bf16": ({}, "--optimizer fused_adam --bf16"),
    "amp": ({}, "--optimizer fused_adam --amp"),
}
TASKS = {"dual": "dual_translation", "multiway": "multiway_translation", "routed": "routed_mtl"}
OUTPUT = REPOSITORY / "build" / "benchmark" / "precision"
WARMUP = 15  # per cent of the updates
NEVER = 1000000
ALLOWED = 0.5  # per cent


def parse(arguments=None):
    """Return the options, checked. Raises RecipeError naming a wrong one."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", metavar="DATA", type=Path, help="folder with binarised data")
    parser.add_argument(
        "-s", "--source-lang", required=True, metavar="SOURCE", help="source language"
    )
    parser.add_argument(
        "-t", "--target-lang", required=True, metavar="TARGET", help="target language"
    )
    parser.add_argument("--system", nargs="+", choices=SHARED, default=SHARED, metavar="NAME",
                        help=f"systems, of {', '.join(SHARED)} (default: all)")  # fmt: skip
    ways = [way for way in WAYS if way != LITERAL]
    parser.add_argument("--way", nargs="+", choices=ways, default=ways, metavar="NAME",
                        help=f"variants besides {LITERAL}, "
                             f"of {', '.join(ways)} (default: all)")  # fmt: skip
    parser.add_argument("--lr", type=float, default=2e-3, help="learning rate (default 0.002)")
    add_device(parser)
    parser.add_argument("--output", type=Path, metavar="FILE", default=OUTPUT,
                        help="name of the output files "
                             "(default: build/benchmark/precision)")  # fmt: skip
    parser.add_argument(
        "--into", type=Path, metavar="PAGE", help="page whose marked part is replaced by the table"
    )
    add_sizes(parser, updates=2000)
    args = parser.parse_args(arguments)
    check_sizes(args)
    args.device = chosen_device(args)
    if not args.data.is_dir():
        raise RecipeError(f"DATA {args.data}: is not a folder")
    return args


def command(args, system: str, way: str, run: Path):
    """Return the fairseq-train command of a system that is computed one way."""
    pair = f"{args.source_lang}-{args.target_lang}"
    there_and_back = f"{pair},{args.target_lang}-{args.source_lang}"
    criterion = SMOOTHED if way in (LITERAL, "seed") else CHUNKED
    model = {
        "dual": f"--arch dual_transformer {plain(args)} {criterion}",
        "multiway": f"{multiway(args)} {PLAIN}",
        "routed": f"{routed(args)} {PLAIN}",
    }[system]
    words = ["fairseq-train", args.data, "--user-dir", user_dir(), "--task", TASKS[system]]
    words += ["--lang-pairs", there_and_back if system == "dual" else pair, *model.split()]
    words += ["--schedule", "joint", "--lr", args.lr, "--clip-norm", 1, "--seed", 1]
    words += ["--max-update", args.updates, *annealing(args.updates, WARMUP)]
    words += ["--max-tokens", args.max_tokens, "--validate-interval", NEVER]
    words += ["--validate-interval-updates", max(1, args.updates // 4)]
    words += ["--no-save", "--save-dir", run, *REPORTING, *WAYS[way][1].split()]
    return [*words, *shlex.split(args.flags), *(["--cpu"] if args.device == "cpu" else [])]


def curve(args, system: str, way: str):
    """Return [(updates, validation loss in bits)] of a training; it runs unless it ran before."""
    run = args.output.with_name(f"{args.output.name}.runs") / f"{system}.{way}"
    words, log, done = command(args, system, way, run), Path(f"{run}.log"), run / "command"
    text = shown(words)
    if not done.is_file() or done.read_text(encoding="utf-8") != text:
        run.mkdir(parents=True, exist_ok=True)
        print(text, flush=True)
        execute(words, log, show=progress, more=WAYS[way][0])
        done.write_text(text, encoding="utf-8")
    return validation_curve(log, "loss")


def difference(curves, of: str) -> float:
    """Return by how many per cent a way's last loss is above the literal one's."""
    (_, literal), (_, other) = curves[LITERAL][-1], curves[of][-1]
    return 100 * (other - literal) / literal


def markdown(record) -> str:
    from speed.report import heading, table

    lines = []
    for system, curves in record["curves"].items():
        for way, points in curves.items():
            changed = "" if way == LITERAL else f"{difference(curves, way):+.2f}"
            lines.append([system, way, *(f"{loss:.4f}" for _, loss in points), changed])
    updates = [f"{updates:,}" for updates, _ in points]
    columns = ["system", "way", *(f"after {number} updates" for number in updates), "per cent"]
    text = f"{heading(record)}. Validation loss in bits per token. The last column is the "
    text += f"difference from {LITERAL} in per cent; the tolerance is {ALLOWED}%.\n\n"
    return text + table(columns, lines)


def draw(record, path) -> None:
    """Draw a panel for each system, with a line for each way."""
    figure, axes = panels(list(record["curves"]), len(record["curves"]))
    for system, curves in record["curves"].items():
        for way, points in curves.items():
            axes[system].plot(*zip(*points), marker="o", label=way)
        axes[system].set_xlabel("updates")
        axes[system].set_ylabel("validation loss, bits")
        axes[system].legend()
    save(figure, path)


def main(arguments=None):
    args = parse(arguments)
    from speed.report import check_page, circumstances, publish

    check_page(args.output, args.into)
    curves = {
        system: {way: curve(args, system, way) for way in (LITERAL, *args.way)}
        for system in args.system
    }
    left_out = ("output", "into", "data")
    settings = {name: value for name, value in vars(args).items() if name not in left_out}
    record = {**circumstances(args.device), "settings": settings, "curves": curves}
    text = markdown(record)
    print(text)
    publish(record, text, args.output, draw, args.into)


if __name__ == "__main__":
    script(main)
