"""A handful of ratios to stock fairseq against stored ones: has a change made something slower?

    python benchmarks/smoke.py            status 1 where a ratio is lower than expected
    python benchmarks/smoke.py --write    replace expected.json by what is measured now

Small models, one thread, two minutes. Ratios of processor time only: a machine's speed cancels out,
and other work on it mostly, though not all of its habits, so that expected.json names the processor
it was written on. A ratio that is too low is measured once more before it counts.
"""

import json
import sys
import tempfile
import time
from argparse import Namespace
from pathlib import Path
from typing import Any, Callable, Dict, Mapping, Optional, Sequence, Tuple

from speed import cli
from speed.corpus import write_corpus
from speed.families import FAMILIES, rows
from speed.harness import Clock, Say, in_turns, summary
from speed.report import Record, circumstances, write
from speed.systems import Member, prepare

from fairseq_ext.tools import UsageError

EXPECTED = Path(__file__).resolve().with_name("expected.json")
TOLERANCE = 0.15
SIZES = {
    **{"layers": 2, "embed_dim": 128, "ffn_embed_dim": 512, "heads": 4, "hidden": 128},
    **{"context": 128, "vocab": 2000, "length": 12, "max_tokens": 512, "updates": 2},
    **{"beam": 5, "sentences": 16, "repeats": 5},
}


def parse(arguments: Optional[Sequence[str]] = None) -> Namespace:
    """Return the options, checked. Raises UsageError naming a wrong one."""
    parser = cli.make_parser(__doc__)
    parser.add_argument("--expected", type=Path, default=EXPECTED, metavar="FILE",
                        help="file with the expected ratios (default: expected.json)")  # fmt: skip
    parser.add_argument("--write", action="store_true", help="replace FILE instead of comparing")
    parser.add_argument("--tolerance", type=float, metavar="SHARE",
                        help=f"how much lower a ratio may be, as a fraction "
                             f"(default {TOLERANCE})")  # fmt: skip
    cli.add_systems(parser, FAMILIES)
    args = parser.parse_args(arguments)
    if args.tolerance is not None and not args.write:
        raise UsageError(f"--tolerance {args.tolerance}: is stored in the file and needs --write")
    if args.tolerance is not None and not 0 < args.tolerance < 1:
        raise UsageError(f"--tolerance {args.tolerance}: must be between 0 and 1")
    if args.write and set(args.system) != set(FAMILIES):
        raise UsageError(f"--system {' '.join(args.system)}: --write needs all systems")
    return args


def read_expected(path: Path) -> Dict[str, Any]:
    """Return the stored record. Raises UsageError for a file that is not one of these sizes."""
    again = "store it with --write on an otherwise idle machine"
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"--expected {path}: {error}; {again}") from error
    if not isinstance(stored, dict) or stored.get("sizes") != SIZES:
        raise UsageError(
            f"--expected {path}: it was made with sizes other than those of this script; {again}"
        )
    return stored


def too_low(measured: Mapping[str, float], stored: Record) -> Dict[str, Tuple[float, float]]:
    """Return {name: (measured, minimum)} of the ratios below what the stored ones allow.

    Raises UsageError naming a ratio that was never stored.
    """
    lower = {}
    for name, ratio in measured.items():
        if name not in stored["ratios"]:
            raise UsageError(f"{name}: no expected ratio; store the ratios again with --write")
        least = stored["ratios"][name] * (1 - stored["tolerance"])
        if ratio < least:
            lower[name] = ratio, least
    return lower


def by_processor(
    measure_turn: Callable[[Member], Tuple[float, int]],
) -> Callable[[Member], Tuple[float, int]]:
    """Return the function that gives seconds of the processor in place of those of the clock."""

    def measured(member: Member) -> Tuple[float, int]:
        start = time.process_time()
        _, number = measure_turn(member)
        return time.process_time() - start, number

    return measured


def ratios_of(
    family: str, data: Path, folder: Path, settings: Namespace, say: Say
) -> Dict[str, float]:
    """Return {"FAMILY, training" or "FAMILY, translation": our ratio to the first stock row}."""
    members = {}
    for number, row in enumerate(rows(family, settings)):
        member_folder = folder / f"{family}.{number}"
        member_folder.mkdir(exist_ok=True)
        members[row.name] = Member(row, data, member_folder, settings)
        members[row.name].first()

    def translate(member: Member) -> Tuple[float, int]:
        return member.translate(settings.beam, settings.sentences)

    measured = {}
    for name, measure_turn in (("training", Member.train), ("translation", translate)):
        turns = in_turns(members, by_processor(measure_turn), settings.repeats)
        stock, ours = (summary(turns[row])["rate"] for row in members)
        measured[f"{family}, {name}"] = ours / stock
        say(f"{family}, {name}: {ours / stock:.3f} times stock")
    return measured


def measure(systems: Sequence[str], say: Say, stored: Optional[Record] = None) -> Dict[str, float]:
    """Return {name: ratio}; one that is below the stored ratio is the better of two attempts."""
    settings = Namespace(**SIZES, device="cpu", precision="fp32", threads=1, flags="")
    prepare(settings.precision, settings.threads)
    measured = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data = write_corpus(folder, 1000, settings.vocab, settings.length, settings.sentences)
        for family in systems:
            ratios = ratios_of(family, data, folder, settings, say)
            if stored and too_low(ratios, stored):
                say(f"{family}: once more")
                again = ratios_of(family, data, folder, settings, say)
                ratios = {what: max(ratio, again[what]) for what, ratio in ratios.items()}
            measured.update(ratios)
    return measured


def main(arguments: Optional[Sequence[str]] = None) -> None:
    """Measure the ratios and store or compare them."""
    args = parse(arguments)
    stored = {} if args.write else read_expected(args.expected)
    here, say = circumstances("cpu"), Clock()
    measured = measure(args.system, say, stored)
    if args.write:
        ratios = {name: round(ratio, 3) for name, ratio in measured.items()}
        record = {"tolerance": args.tolerance or TOLERANCE, "sizes": SIZES, "ratios": ratios}
        write(args.expected, json.dumps({**here, **record}, indent=1) + "\n")
        return
    low = too_low(measured, stored)
    for name, (ratio, least) in low.items():
        print(
            f"slower: {name} is {ratio:.3f} times stock; expected {stored['ratios'][name]:.3f}, "
            f"at least {least:.3f}"
        )
    if low:
        if stored["device"] != here["device"]:
            print(f"note: the expected ratios are of {stored['device']}, this is {here['device']}")
        sys.exit(1)
    print(f"all {len(measured)} ratios are at least as expected, less {stored['tolerance']:.0%}")


if __name__ == "__main__":
    cli.run_script(main)
