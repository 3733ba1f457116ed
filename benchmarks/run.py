"""Speed and memory of the suite's systems beside stock fairseq at the same size, in one run.

    python benchmarks/run.py --system dual duo --threads 1
    python benchmarks/run.py --system multiway --hidden 512 --context 512
    make bench                                             all systems, into docs/benchmarks

dual and tagged stand beside two stock Transformers, duo and twin_transformer beside one; twin_lstm,
multiway and routed beside the stock ``lstm`` with attention, the last two also beside a second one,
widened to equal FLOPs per update. Each system has a process of its own. The systems take turns on
the same synthetic corpus, and each figure is the median over the turns. Training runs fairseq's
Trainer, translation the task and generator of fairseq-generate. The operations of an update are
those of its matrix products, counted while it runs. The limit is the time of the same products
alone or, if that is longer, of moving the weights through memory. Writes OUTPUT.json, .md and .png.
"""

import tempfile
from argparse import Namespace
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence, Tuple

from speed import cli
from speed.corpus import write_corpus
from speed.families import FAMILIES
from speed.harness import SEARCHES, Clock, Say, measure_family
from speed.report import chart, circumstances, markdown, page_around, publish, settings_of
from speed.startup import startup
from speed.systems import prepare

from fairseq_ext.tools import AddValues


def parse(arguments: Optional[Sequence[str]] = None) -> Namespace:
    """Return the options, checked and completed. Raises UsageError naming a wrong one."""
    parser = cli.make_parser(__doc__)
    cli.add_page(parser)
    cli.add_systems(parser, FAMILIES)
    cli.add_device(parser)
    parser.add_argument("--precision", nargs="+", action=AddValues, choices=cli.ALL_PRECISIONS,
                        help="precisions (default: fp32; on a GPU all it supports)")  # fmt: skip
    parser.add_argument("--threads", nargs="+", action=AddValues, type=cli.thread_count,
                        metavar="N",
                        help="numbers of threads (default: 1 and all; on a GPU all)")  # fmt: skip
    texts = " ".join(f"{beam}:{sentences}" for beam, sentences in SEARCHES)
    parser.add_argument("--search", nargs="*", action=AddValues, dest="searches",
                        type=cli.beam_and_sentences, metavar="BEAM:SENTENCES", default=SEARCHES,
                        help=f"searches to measure (default {texts})")  # fmt: skip
    parser.add_argument("--no-startup", action="store_true",
                        help="do not measure the start of commands")  # fmt: skip
    cli.add_numbers(parser, train_sentences=4000, **cli.SIZES)
    cli.add_flags(parser)
    args = parser.parse_args(arguments)
    cli.check_models(args)
    cli.check_corpus(args)
    gpu, cpus = args.device == "cuda", cli.usable_cpus()
    args.precision = args.precision or (cli.PRECISIONS["cuda"] if gpu else ("fp32",))
    cli.check_precision(args.device, *args.precision)
    args.threads = args.threads or ((cpus,) if gpu else tuple(sorted({1, cpus})))
    args.output = cli.chosen_output(args, args.device)
    return args


def measure(
    args: Namespace, data: Path, folder: Path, say: Say
) -> Tuple[Dict[str, List[Any]], List[Dict[str, Any]]]:
    """Return ({family: [setting with results]}, [peak rates of the machine])."""
    families: Dict[str, List[Any]] = {family: [] for family in args.system}
    machine = []
    for precision in args.precision:
        for threads in args.threads:
            here = {"precision": precision, "threads": threads}
            settings = Namespace(**{**vars(args), **here})
            for family in args.system:
                say(f"{family}, {precision}, {threads} thread(s)")
                results, rates = measure_family(family, data, folder, settings, say=say)
                families[family].append({**here, "results": results})
            machine.append({**here, **rates})
    return families, machine


def main(arguments: Optional[Sequence[str]] = None) -> None:
    """Measure and report."""
    args = parse(arguments)
    if args.into:
        page_around(args.into, args.output)  # its errors come before the measurement
    prepare(args.precision[0], max(args.threads))
    say = Clock()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # three times the largest batch: the one that is translated is of middle length
        valid = max([128, *(3 * sentences for _, sentences in args.searches)])
        data = write_corpus(folder, args.train_sentences, args.vocab, args.length, valid=valid)
        families, machine = measure(args, data, folder, say)
    record = {
        **circumstances(args.device),
        "settings": settings_of(args, "output", "into"),
        "machine": machine,
        "families": families,
        "startup": {} if args.no_startup else startup(args.repeats, say),
        "seconds": round(say.seconds()),
    }
    publish(record, markdown(record), args.output, chart, args.into)


if __name__ == "__main__":
    cli.run_script(main)
