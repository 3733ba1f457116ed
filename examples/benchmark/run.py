"""Speed and memory of the suite's systems beside stock fairseq at the same size, in one run.

    python examples/benchmark/run.py --system dual duo --threads 1
    python examples/benchmark/run.py --system multiway --hidden 512 --context 512
    make bench                                             all systems, into docs/benchmarks

dual stands beside two stock Transformers, duo and twin_transformer beside one; twin_lstm, multiway
and routed beside the stock ``lstm`` with attention, the last two also beside a second one, widened
to equal FLOPs per update. Each system has a process of its own. The systems take turns on the same
synthetic corpus, and each figure is the median over the turns. Training runs fairseq's Trainer,
translation the task and generator of fairseq-generate. The operations of an update are those of its
matrix products, counted while it runs. The limit is the time of the same products alone or, if that
is longer, of moving the weights through memory. Writes OUTPUT.json, .md and .png.
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
    add_device,
    add_sizes,
    check_sizes,
    chosen_device,
    chosen_precisions,
    chosen_threads,
    every_precision,
    parse_searches,
)
from speed.families import FAMILIES
from speed.harness import SEARCHES, Clock, measure_family


def parse(arguments=None):
    """Return the options, checked and completed. Raises RecipeError naming a wrong one."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--output",
        type=Path,
        metavar="FILE",
        help="name of the output files (default: build/benchmark/cpu or cuda)",
    )
    parser.add_argument(
        "--into", type=Path, metavar="PAGE", help="page whose marked part is replaced by the tables"
    )
    parser.add_argument("--system", nargs="+", choices=FAMILIES, default=FAMILIES, metavar="NAME",
                        help=f"systems, of {', '.join(FAMILIES)} (default: all)")  # fmt: skip
    add_device(parser)
    parser.add_argument("--precision", nargs="+", choices=every_precision(),
                        help="precisions (default: fp32; on a GPU all it supports)")  # fmt: skip
    parser.add_argument("--threads", nargs="+", type=int, metavar="N",
                        help="numbers of threads (default: 1 and all; on a GPU all)")  # fmt: skip
    texts = [f"{beam}:{sentences}" for beam, sentences in SEARCHES]
    parser.add_argument("--search", nargs="*", default=texts, metavar="BEAM:SENTENCES",
                        help=f"searches to measure (default {' '.join(texts)})")  # fmt: skip
    parser.add_argument(
        "--no-startup", action="store_true", help="do not measure the start of commands"
    )
    parser.add_argument("--train-sentences", type=int, default=4000, metavar="N",
                        help="training sentences of the corpus (default 4000)")  # fmt: skip
    add_sizes(parser)
    args = parser.parse_args(arguments)
    check_sizes(args)
    if args.train_sentences < 1:
        raise RecipeError(f"--train-sentences {args.train_sentences}: must be at least 1")
    args.device = chosen_device(args)
    args.precision, args.threads = chosen_precisions(args), chosen_threads(args)
    args.searches = parse_searches(args.search)
    folder = args.into.parent if args.into else REPOSITORY / "build" / "benchmark"
    args.output = args.output or folder / args.device
    return args


def measure(args, data: Path, folder: Path, say):
    """Return ({family: [setting with results]}, [peak rates of the machine])."""
    families, machine = {}, []
    for precision in args.precision:
        for threads in args.threads:
            here = {"precision": precision, "threads": threads}
            settings = argparse.Namespace(**{**vars(args), **here})
            del settings.output, settings.into
            for family in args.system:
                say(f"{family}, {precision}, {threads} thread(s)")
                results, best = measure_family(family, data, folder, settings, say=say)
                families.setdefault(family, []).append({**here, "results": results})
            machine.append({**here, **best})
    return families, machine


def main(arguments=None):
    args = parse(arguments)
    # after the options are known to be right: this takes seconds
    from speed.corpus import write_corpus
    from speed.report import chart, check_page, circumstances, markdown, publish
    from speed.startup import startup
    from speed.systems import prepare

    check_page(args.output, args.into)
    prepare(args.precision[0], max(args.threads))
    say = Clock()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # three times the largest batch: the one that is translated is of middle length
        valid = max([128, *(3 * sentences for _, sentences in args.searches)])
        data = write_corpus(folder, args.train_sentences, args.vocab, args.length, valid=valid)
        families, machine = measure(args, data, folder, say)
    settings = {
        name: value
        for name, value in vars(args).items()
        if name not in ("output", "into", "search")
    }
    record = {
        **circumstances(args.device),
        "settings": settings,
        "machine": machine,
        "families": families,
        "startup": {} if args.no_startup else startup(args.repeats, say),
        "seconds": round(say.seconds()),
    }
    text = markdown(record)
    print(text)
    publish(record, text, args.output, chart, args.into)


if __name__ == "__main__":
    script(main)
