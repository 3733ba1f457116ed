"""What dual inference costs: plain beam search and search with re-ranking, in one run.

    python benchmarks/dual_inference.py CHECKPOINT DATA -s de -t en

CHECKPOINT: of dual_translation; DATA: its binarised data. Both translate the same batches of
--gen-subset, evenly spaced from short to long sentences, and take turns, on the CPU; each figure is
the median over the turns. Operations and the limit (the time of the same matrix products alone) are
those of the batch in the middle. Writes OUTPUT.json and OUTPUT.md.
"""

import statistics
from argparse import Namespace
from typing import Dict, List, Optional, Sequence, Tuple

import torch
from speed import cli, passes, translation
from speed.harness import Clock, Figures, in_turns
from speed.products import Products
from speed.translation import Batch, Translator, spaced, timed_pass

from fairseq_ext.tools import AddValues, UsageError

SEARCH, BOTH = "search", "search and re-ranking"
COLUMNS = ("sentences/s", "time ratio", "operations ratio", "share of the limit")


def some(batches: Sequence[Batch], sentences: int) -> List[Batch]:
    """Return evenly spaced batches of about so many sentences in all, at least one batch."""
    number = round(sentences / max(len(batch["id"]) for batch in batches))
    return spaced(batches, min(len(batches), max(1, number)))


def alone(member: Translator, batch: Batch) -> Tuple[int, float, float]:
    """Return (operations, seconds of the products alone, seconds) of a batch."""
    with Products(len(batch["id"])) as products:
        member.translate([batch])
    seconds = [timed_pass(lambda: member.translate([batch]))[0] for _ in range(3)]
    return products.operations(), products.seconds(), statistics.median(seconds)


def measure(args: Namespace, sentences: int) -> Dict[str, Figures]:
    """Return {member: figures} with so many sentences at a time."""
    members = {
        name: Translator(args, args.checkpoint, "dual_translation", sentences, more)
        for name, more in ((SEARCH, ""), (BOTH, f"--dual-alpha {args.alpha}"))
    }
    batches = some(members[SEARCH].batches, args.limit)

    def measured(member: Translator) -> Tuple[float, int]:
        return timed_pass(lambda: member.translate(batches))

    turns = in_turns(members, measured, args.repeats, Clock())
    medians = {name: statistics.median(costs) for name, costs in turns.items()}
    counted = {name: alone(member, batches[len(batches) // 2]) for name, member in members.items()}
    results = {}
    for name, costs in turns.items():
        operations, products, whole = counted[name]
        results[name] = {
            "sentences/s": 1 / medians[name],
            "time ratio": medians[name] / medians[SEARCH],
            "operations ratio": operations / counted[SEARCH][0],
            "share of the limit": products / whole,
            "turns": costs,
        }
    return results


def main(arguments: Optional[Sequence[str]] = None) -> None:
    """Measure and report."""
    parser = cli.make_parser(__doc__)
    translation.add_arguments(parser)
    cli.add_output(parser, "dual_inference")
    parser.add_argument("--alpha", type=float, default=0.8,
                        help="alpha of the reranking (default 0.8)")  # fmt: skip
    parser.add_argument("--sentences", type=cli.positive, nargs="+", action=AddValues,
                        default=[1, 8, 64],
                        help="numbers of sentences per batch (default 1 8 64)")  # fmt: skip
    cli.add_numbers(parser, limit=256, beam=6, longest=200, repeats=5)
    cli.add_threads(parser)
    args = parser.parse_args(arguments)
    if not 0 <= args.alpha < 1:
        raise UsageError(f"--alpha {args.alpha}: must be at least 0 and less than 1")
    torch.set_num_threads(args.threads)
    results = {
        f"{number} at a time, {name}": figures
        for number in args.sentences
        for name, figures in measure(args, number).items()
    }
    sizes = f"{args.source_lang}-{args.target_lang}, beam {args.beam}, about {args.limit} sentences"
    passes.report(args, results, COLUMNS, sizes, what="translation")


if __name__ == "__main__":
    cli.run_script(main)
