"""How the time of an update and of a search grows: measured slopes beside the arithmetic's.

    python benchmarks/growth.py --axis length --system transformer duo
    make bench-growth                      everything, into docs/benchmarks

Axes: the length of sentences, their number in a batch, the vocabulary, and the pairs of a model
(dual, multiway and routed), one at a time; the others stay at 16 words, 8 sentences, 4,000
entries, one pair. All sentences of a point have one length. The arithmetic's slope is that of the
operations of matrix products, counted while the update or the search runs. "Last step" is between
the two largest values, where what costs little in small inputs no longer hides the rest; "steeper"
marks a time that grows faster there than the arithmetic. Writes OUTPUT.json, .md and .png.
"""

import tempfile
from argparse import Namespace
from pathlib import Path
from typing import Any, Dict, Optional, Sequence

from speed import cli
from speed.families import SHARED, SYSTEMS
from speed.growth import draw, markdown, measure_axis, slopes
from speed.harness import Clock, Say
from speed.report import circumstances, page_around, publish, settings_of
from speed.systems import prepare

from fairseq_ext.tools import AddValues, UsageError

AXES = {
    "length": (8, 16, 32, 64, 128, 256),
    "batch": (1, 2, 4, 8, 16, 32, 64, 128, 256, 512),
    "vocab": (4000, 8000, 16000, 32000, 64000),
    "pairs": (2, 4, 6, 8, 10),
}
# least and largest value where they are not 1 and unlimited, and why
LEAST = {"vocab": 10}
LIMITS = {
    "pairs": (25, "there are names for 26 languages, 25 pairs"),
    "length": (1000, "the models take 1024 positions; at most 1000"),
}
SIZES = {
    **{"repeats": 5, "layers": 2, "embed_dim": 128, "ffn_embed_dim": 512, "heads": 4},
    **{"hidden": 128, "context": 128},
}


def parse(arguments: Optional[Sequence[str]] = None) -> Namespace:
    """Return the options, checked and completed. Raises UsageError naming a wrong one."""
    parser = cli.make_parser(__doc__)
    cli.add_page(parser)
    parser.add_argument("--axis", nargs="+", action=AddValues, choices=tuple(AXES),
                        default=tuple(AXES),
                        help="what is varied (default: all)")  # fmt: skip
    parser.add_argument("--values", nargs="+", action=AddValues, type=int, metavar="N",
                        help="values of a single --axis, ascending")  # fmt: skip
    cli.add_systems(parser, SYSTEMS)
    parser.add_argument("--beam", type=int, default=5,
                        help="beam size; 0 measures no search (default 5)")  # fmt: skip
    cli.add_threads(parser)
    parser.add_argument("--precision", default="fp32", choices=cli.ALL_PRECISIONS,
                        help="precision of the arithmetic (default fp32)")  # fmt: skip
    cli.add_device(parser)
    cli.add_numbers(parser, **SIZES)
    cli.add_flags(parser)
    args = parser.parse_args(arguments)
    cli.check_models(args)
    if args.beam < 0:
        raise UsageError(f"--beam {args.beam}: must be at least 0")
    if args.values is not None:
        check_values(args)
    if tuple(args.axis) == ("pairs",) and not set(args.system) & set(SHARED):
        raise UsageError(
            f"--system {' '.join(args.system)}: --axis pairs needs one of {', '.join(SHARED)}"
        )
    cli.check_precision(args.device, args.precision)
    args.output = cli.chosen_output(args, "growth")
    return args


def check_values(args: Namespace) -> None:
    """Raise UsageError for --values without an axis of their own, or that this axis has not."""
    if len(args.axis) != 1:
        raise UsageError(f"--values: needs one --axis, not {', '.join(args.axis)}")
    (axis,), values, least = args.axis, args.values, LEAST.get(args.axis[0], 1)
    if len(values) < 2 or values[0] < least or values != sorted(set(values)):
        raise UsageError(
            f"--values {' '.join(map(str, values))}: must be at least two ascending numbers, "
            f"none below {least}"
        )
    if axis in LIMITS and values[-1] > LIMITS[axis][0]:
        raise UsageError(f"--values {values[-1]}: {LIMITS[axis][1]}")


def measure(args: Namespace, folder: Path, say: Say) -> Dict[str, Dict[str, Any]]:
    """Return {axis: {system: {kind: values, seconds, operations and slopes}}}."""
    measured: Dict[str, Dict[str, Any]] = {}
    for axis in args.axis:
        for system in args.system:
            if axis != "pairs" or system in SHARED:
                curves = measure_axis(axis, args.values or AXES[axis], system, args, folder, say)
                measured.setdefault(axis, {})[system] = {
                    name: {**curve._asdict(), "slopes": slopes(curve)}
                    for name, curve in curves.items()
                }
    return measured


def main(arguments: Optional[Sequence[str]] = None) -> None:
    """Measure and report."""
    args = parse(arguments)
    if args.into:
        page_around(args.into, args.output)  # its errors come before the measurement
    prepare(args.precision, args.threads)
    say = Clock()
    with tempfile.TemporaryDirectory() as folder:
        axes = measure(args, Path(folder), say)
    record = {
        **circumstances(args.device),
        "threads": args.threads,
        "settings": settings_of(args, "output", "into"),
        "axes": axes,
        "seconds": round(say.seconds()),
    }
    publish(record, markdown(record), args.output, draw, args.into)


if __name__ == "__main__":
    cli.run_script(main)
