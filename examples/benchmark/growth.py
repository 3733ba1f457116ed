"""How the time of an update and of a search grows: measured slopes beside the arithmetic's.

    python examples/benchmark/growth.py --axis length --system transformer duo
    make bench-growth                      everything, into docs/benchmarks

Axes: the length of sentences, their number in a batch, the vocabulary, and the pairs of a model
(dual, multiway and routed), one at a time; the others stay at 16 words, 8 sentences, 4,000
entries, one pair. All sentences of a point have one length. The arithmetic's slope is that of the
operations of matrix products, counted while the update or the search runs. "Last step" is between
the two largest values, where what costs little in small inputs no longer hides the rest; "steeper"
marks a time that grows faster there than the arithmetic. Writes OUTPUT.json, .md and .png.
"""

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from recipe_tools import RecipeError
from recipe_tools.cli import script
from speed import REPOSITORY
from speed.cli import (
    AXES,
    PRECISIONS,
    add_device,
    add_sizes,
    check_sizes,
    chosen_device,
    every_precision,
    usable_cpus,
)
from speed.families import SHARED, SYSTEMS
from speed.harness import Clock

SMALLER = {"layers": 2, "embed_dim": 128, "ffn_embed_dim": 512, "hidden": 128, "context": 128}


def parse(arguments=None):
    """Return the options, checked and completed. Raises RecipeError naming a wrong one."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, metavar="FILE",
                        help="name of the output files "
                             "(default: build/benchmark/growth, or beside PAGE)")  # fmt: skip
    parser.add_argument(
        "--into", type=Path, metavar="PAGE", help="page whose marked part is replaced by the table"
    )
    parser.add_argument(
        "--axis",
        nargs="+",
        choices=tuple(AXES),
        default=tuple(AXES),
        help="what is varied (default: all)",
    )
    parser.add_argument(
        "--values", nargs="+", type=int, metavar="N", help="values of a single --axis, ascending"
    )
    parser.add_argument("--system", nargs="+", choices=SYSTEMS, default=SYSTEMS, metavar="NAME",
                        help=f"systems, of {', '.join(SYSTEMS)} (default: all)")  # fmt: skip
    parser.add_argument(
        "--beam", type=int, default=5, help="beam size; 0 measures no search (default 5)"
    )
    parser.add_argument("--threads", type=int, default=1, help="number of threads (default 1)")
    parser.add_argument(
        "--precision",
        default="fp32",
        choices=every_precision(),
        help="precision of the arithmetic (default fp32)",
    )
    add_device(parser)
    add_sizes(parser, varied=True, **SMALLER)
    args = parser.parse_args(arguments)
    check_sizes(args)
    if args.beam < 0:
        raise RecipeError(f"--beam {args.beam}: must be at least 0")
    if not 1 <= args.threads <= usable_cpus():
        raise RecipeError(f"--threads {args.threads}: must be between 1 and {usable_cpus()}")
    check_values(args)
    args.device = chosen_device(args)
    folder = args.into.parent if args.into else REPOSITORY / "build" / "benchmark"
    args.output = args.output or folder / "growth"
    if args.precision not in PRECISIONS[args.device]:
        raise RecipeError(
            f"--precision {args.precision}: with --device {args.device} it must be one of "
            f"{', '.join(PRECISIONS[args.device])}"
        )
    return args


def check_values(args) -> None:
    """Raise RecipeError for --values without an axis, or --axis pairs without a fitting system."""
    values = args.values
    if values is not None and len(args.axis) != 1:
        raise RecipeError(f"--values: needs one --axis, not {', '.join(args.axis)}")
    smallest = {"vocab": 10}.get(args.axis[0], 1)
    if values is not None and (
        len(values) < 2 or values[0] < smallest or values != sorted(set(values))
    ):
        raise RecipeError(
            f"--values {' '.join(map(str, values))}: must be at least two ascending numbers, "
            f"none below {smallest}"
        )
    if tuple(args.axis) == ("pairs",) and not set(args.system) & set(SHARED):
        raise RecipeError(
            f"--system {' '.join(args.system)}: --axis pairs needs one of {', '.join(SHARED)}"
        )
    if args.axis[0] == "pairs" and values and values[-1] > 25:
        raise RecipeError(f"--values {values[-1]}: there are names for 26 languages, 25 pairs")
    if args.axis[0] == "length" and values and values[-1] > 1000:
        raise RecipeError(f"--values {values[-1]}: the models take 1024 positions; at most 1000")


def measure(args, folder: Path, say):
    """Return {axis: {system: {kind: values, seconds, operations and slopes}}}."""
    from speed.growth import measure_axis, slopes

    measured = {}
    for axis in args.axis:
        for system in args.system:
            if axis == "pairs" and system not in SHARED:
                continue
            curves = measure_axis(axis, args.values or AXES[axis], system, args, folder, say)
            measured.setdefault(axis, {})[system] = {
                name: {**curve._asdict(), "slopes": slopes(curve)} for name, curve in curves.items()
            }
    return measured


def main(arguments=None):
    args = parse(arguments)
    # after the options are known to be right: this takes seconds
    from speed.growth import draw, markdown
    from speed.report import check_page, circumstances, publish
    from speed.systems import prepare

    check_page(args.output, args.into)
    prepare(args.precision, args.threads)
    say = Clock()
    with tempfile.TemporaryDirectory() as folder:
        axes = measure(args, Path(folder), say)
    settings = {name: value for name, value in vars(args).items() if name not in ("output", "into")}
    record = {**circumstances(args.device), "threads": args.threads, "settings": settings}
    record.update(axes=axes, seconds=round(say.seconds()))
    text = markdown(record)
    print(text)
    publish(record, text, args.output, draw, args.into)


if __name__ == "__main__":
    script(main)
