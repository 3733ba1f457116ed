"""Peak memory of a training of every system beside stock fairseq, with a large vocabulary.

    python benchmarks/memory.py
    python benchmarks/memory.py --system dual --vocab 8000 --max-tokens 2048

Each model trains in a process of its own. Figures are the most that it used in the updates
after the first one, above what the process used before the model was built. The peers are those of
run.py; two stock models share one process and work in turn. Writes OUTPUT.json and OUTPUT.md.
"""

import contextlib
import tempfile
from argparse import Namespace
from pathlib import Path
from typing import Callable, Dict, Optional, Sequence

from speed import cli, passes
from speed.corpus import write_corpus
from speed.families import FAMILIES, Row
from speed.harness import MEBI, Clock, Figures, Say, rows_of
from speed.systems import prepare
from speed.worker import Worker

COLUMNS = ("peak MiB", "ratio", "parameters")


def measure_family(
    family: str,
    data: Path,
    folder: Path,
    args: Namespace,
    start: Callable[[Row, Path, Path, Namespace], Worker] = Worker,
    say: Say = print,
) -> Dict[str, Figures]:
    """Return {row: figures} of a family; the ratio is that to the peer, the row before the system.

    start(row, data, folder, args): a member at work.
    """
    figures: Dict[str, Figures] = {}
    *peers, system = rows_of(family, data, args)
    for row in (peers[-1], system):  # the closest peer
        with contextlib.closing(start(row, data, folder, args)) as member:
            member.call("forget_peak")
            for _ in range(args.repeats):
                member.call("train")
            peak = member.call("peak") / MEBI
            parameters = member.call("parameters")
        name = row.name if row is system else f"{row.name} ({family})"
        figures[name] = {"peak MiB": peak, "parameters": parameters}
        peer = next(iter(figures.values()))["peak MiB"]
        figures[name]["ratio"] = peak / peer
        say(f"{name}: {peak:.0f} MiB")
    return figures


def main(arguments: Optional[Sequence[str]] = None) -> None:
    """Measure and report."""
    parser = cli.make_parser(__doc__)
    cli.add_systems(parser, FAMILIES)
    cli.add_device(parser)
    parser.add_argument("--precision", choices=cli.ALL_PRECISIONS, default="fp32",
                        help="precision (default %(default)s)")  # fmt: skip
    cli.add_output(parser, "memory")
    sizes = {**cli.SIZES, "updates": 1, "repeats": 1, "max_tokens": 4096, "vocab": 32000}
    cli.add_numbers(parser, train_sentences=4000, **sizes)
    cli.add_threads(parser)
    cli.add_flags(parser)
    args = parser.parse_args(arguments)
    cli.check_models(args)
    cli.check_corpus(args)
    cli.check_precision(args.device, args.precision)
    prepare(args.precision, args.threads)
    say, results = Clock(), {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data = write_corpus(folder, args.train_sentences, args.vocab, args.length)
        for family in args.system:
            results.update(measure_family(family, data, folder, args, say=say))
    sizes_text = f"{args.vocab:,} entries, {args.max_tokens:,} tokens, {args.precision}"
    passes.report(args, results, COLUMNS, sizes_text, args.device, what="training")


if __name__ == "__main__":
    cli.run_script(main)
