"""Speed of the routed unit beside its literal loop and torch's GRU, in one run.

    python examples/benchmark/unit.py --output build/unit

Forward and backward pass over a batch of sequences. The GRU of torch has the width at which its
products have the operations of the unit's. The limit is the time of the unit's matrix products
alone, each kind timed by itself. The candidates take turns; each figure is the median over the
turns. Writes build/unit.json and build/unit.md.
"""

import argparse
import json
import math
import statistics
import sys
import time
from pathlib import Path

import torch
from products import Products
from run import REPOSITORY, processor, today, write

COLUMNS = ("ms", "GFLOP", "GFLOP/s", "share of the limit")


def equal_width(operations: float, size: int) -> int:
    """H' with 3 H' (I + H') = the multiplications of a step in the forward pass."""
    return round((math.sqrt(size**2 + 4 * operations / 3) - size) / 2)


def candidates(args, inputs):
    """{name: function that computes the states}."""
    sys.path.insert(0, str(REPOSITORY))
    from fairseq_ext.routed.modules import RoutedUnit

    unit = RoutedUnit(args.size, args.size, args.shared_blocks)
    if args.device:
        unit.to(args.device)
    blocks = (args.shared_blocks + 1) * 3 * args.size * 2 * args.size
    router = 3 * args.size * args.size + args.size * args.shared_blocks
    width = equal_width(blocks + router, args.size)
    gru = torch.nn.GRU(args.size, width, batch_first=True).to(inputs.device)
    return {
        "literal loop": lambda: unit(inputs, literal=True)[0],
        "routed unit": lambda: unit(inputs)[0],
        f"torch.nn.GRU, {width} units": lambda: gru(inputs)[0],
    }


def both_passes(compute) -> None:
    states = compute()
    states.backward(torch.ones_like(states))


def seconds(compute) -> float:
    start = time.perf_counter()
    both_passes(compute)
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter() - start


def measure(args):
    """{name: {column: value}}"""
    torch.manual_seed(1)
    shape = (args.sentences, args.steps, args.size)
    inputs = torch.randn(shape, device=args.device or "cpu", requires_grad=True)
    found = candidates(args, inputs)
    turns = {name: [] for name in found}
    for turn in range(args.repeats + 1):
        for name, compute in found.items():
            taken = seconds(compute)
            if turn:  # the first is the warm-up
                turns[name].append(taken)
    results = {}
    for name, compute in found.items():
        with Products(args.sentences * args.steps) as products:
            both_passes(compute)
        taken, operations = statistics.median(turns[name]), products.operations()
        results[name] = {
            "ms": round(taken * 1e3, 1),
            "GFLOP": round(operations / 1e9, 2),
            "GFLOP/s": round(operations / taken / 1e9, 1),
            "share of the limit": round(products.seconds() / taken, 3),
        }
    return results


def table(args, results) -> str:
    device = torch.cuda.get_device_name() if args.device == "cuda" else processor()
    lines = [
        f"{today()}, {device}, {torch.get_num_threads()} thread(s), torch {torch.__version__}; "
        f"{args.sentences} sequences of {args.steps} steps, width {args.size}, "
        f"{args.shared_blocks}+1 blocks; medians of {args.repeats}.",
        "",
        "| forward and backward pass | " + " | ".join(COLUMNS) + " |",
        "|---" * (len(COLUMNS) + 1) + "|",
    ]
    for name, found in results.items():
        lines.append(f"| {name} | " + " | ".join(str(found[column]) for column in COLUMNS) + " |")
    return "\n".join(lines) + "\n"


def main(arguments=None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", default=str(REPOSITORY / "build" / "unit"))
    parser.add_argument("--device", default="", help="cuda for a GPU")
    for option, value in (
        *(("--sentences", 64), ("--steps", 25), ("--size", 400), ("--shared-blocks", 3)),
        ("--repeats", 7),
    ):
        parser.add_argument(option, type=int, default=value, help=f"(default {value})")
    args = parser.parse_args(arguments)
    results = measure(args)
    text = table(args, results)
    print(text)
    record = {"date": today(), "settings": vars(args), "results": results}
    write(Path(args.output).with_suffix(".json"), json.dumps(record, indent=2) + "\n")
    write(Path(args.output).with_suffix(".md"), text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
