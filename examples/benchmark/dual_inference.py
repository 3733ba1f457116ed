"""What dual inference costs: plain beam search and search with re-ranking, in one run.

    python examples/benchmark/dual_inference.py CHECKPOINT DATA -s de -t en

CHECKPOINT: of dual_translation; DATA: its binarised data. Both translate the same batches of
--gen-subset, evenly spaced from short to long sentences, and take turns, on the CPU; each figure is
the median over the turns. Operations and the limit (the time of the same matrix products alone) are
those of the batch in the middle. Writes OUTPUT.json and OUTPUT.md.
"""

import argparse
import statistics
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from recipe_tools import RecipeError
from recipe_tools.cli import script
from speed import REPOSITORY, passes, translation
from speed.harness import in_turns
from speed.products import Products

SEARCH, BOTH = "search", "search and re-ranking"
COLUMNS = ("sentences/s", "time ratio", "operations ratio", "share of the limit")


def spaced(batches, sentences: int):
    """Return evenly spaced batches of about so many sentences in all, at least one batch."""
    number = max(1, round(sentences / max(len(batch["id"]) for batch in batches)))
    step = max(1, len(batches) // number)
    return batches[step // 2 :: step]


def alone(member, batch):
    """Return (operations, seconds of the products alone, seconds) of a batch."""
    with Products(len(batch["id"])) as products:
        member.translate([batch])
    taken = []
    for _ in range(3):
        start = time.perf_counter()
        member.translate([batch])
        taken.append(time.perf_counter() - start)
    return products.operations(), products.seconds(), statistics.median(taken)


def measure(args, sentences: int):
    """Return {member: figures} with so many sentences at a time."""
    task = "dual_translation"
    members = {
        SEARCH: translation.Translator(args, args.checkpoint, task, sentences),
        BOTH: translation.Translator(
            args, args.checkpoint, task, sentences, f"--dual-alpha {args.alpha}"
        ),
    }
    batches = spaced(members[SEARCH].batches, args.limit)

    def seconds(member):
        start = time.perf_counter()
        translations = member.translate(batches)
        return time.perf_counter() - start, len(translations)

    turns = in_turns(members, seconds, args.repeats, lambda text: print(text, flush=True))
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


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    translation.add_arguments(parser)
    default = REPOSITORY / "build" / "benchmark" / "dual_inference"
    parser.add_argument("--output", type=Path, default=default, help="name of the output files")
    parser.add_argument(
        "--alpha", type=float, default=0.8, help="alpha of the reranking (default 0.8)"
    )
    parser.add_argument(
        "--sentences",
        type=passes.positive,
        nargs="+",
        default=[1, 8, 64],
        help="numbers of sentences per batch (default 1 8 64)",
    )
    parser.add_argument(
        "--limit",
        type=passes.positive,
        default=256,
        help="approximate number of sentences to translate (default 256)",
    )
    passes.add_numbers(parser, beam=6, longest=200, threads=1, repeats=5)
    args = parser.parse_args(arguments)
    if not 0 <= args.alpha < 1:
        raise RecipeError(f"--alpha {args.alpha}: must be at least 0 and less than 1")
    translation.set_up(args.threads)
    results = {
        f"{number} at a time, {name}": figures
        for number in args.sentences
        for name, figures in measure(args, number).items()
    }
    sizes = f"{args.source_lang}-{args.target_lang}, beam {args.beam}, about {args.limit} sentences"
    passes.report(args, results, COLUMNS, sizes, what="translation")


if __name__ == "__main__":
    script(main)
