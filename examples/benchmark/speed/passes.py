"""Forward and backward passes of a layer or a model alone, without fairseq around them."""

import statistics
import time
from pathlib import Path

from .harness import in_turns
from .limits import synchronise
from .products import Products
from .report import circumstances, heading, publish, table

REPEATS = 7
NUMBERS = {
    "beam": "beam size",
    "longest": "maximum length of a hypothesis",
    "threads": "number of threads",
    "repeats": "number of measurements",
    "sentences": "sentences per batch",
    "steps": "positions of a sentence",
    "embed_dim": "width of the embeddings",
    "hidden_size": "units of the LSTM",
    "words": "entries of the dictionary",
    "size": "units of a block",
    "shared_blocks": "number of shared blocks",
}


def measure(candidates, tokens: int, repeats: int, device="cpu"):
    """Return {name: figures} of functions that do both passes over so many tokens, in turns."""

    def seconds(compute):
        start = time.perf_counter()
        compute()
        synchronise(device)
        return time.perf_counter() - start, 1

    turns = in_turns(candidates, seconds, repeats)
    results = {}
    for name, compute in candidates.items():
        with Products(tokens) as products:
            compute()
        taken, operations = statistics.median(turns[name]), products.operations()
        results[name] = {
            "ms": taken * 1e3,
            "tokens/s": tokens / taken,
            "GFLOP": operations / 1e9,
            "MFLOP/token": operations / tokens / 1e6,
            "GFLOP/s": operations / taken / 1e9,
            "share of the limit": products.seconds() / taken,
        }
    return results


def report(args, results, columns, sizes: str, device="cpu", what="forward and backward pass"):
    """Print the columns, and write them and all figures to --output; what: title of the rows."""
    import torch

    record = {
        **circumstances(device),
        "threads": torch.get_num_threads(),
        "settings": {
            name: str(value) if isinstance(value, Path) else value
            for name, value in vars(args).items()
            if name != "output"
        },
        "results": results,
    }
    lines = [[name, *(figures[column] for column in columns)] for name, figures in results.items()]
    text = f"{heading(record)}, {record['threads']} thread(s); {sizes}; medians of {args.repeats}."
    text += "\n\n" + table([what, *columns], lines)
    print(text)
    publish(record, text, args.output)


def add_numbers(parser, **numbers) -> None:
    """Add options that are positive numbers, with their defaults."""
    for name, value in numbers.items():
        option = "--" + name.replace("_", "-")
        words = f"{NUMBERS[name]} (default {value})"
        parser.add_argument(option, type=positive, default=value, help=words)


def positive(text: str) -> int:
    """Return a number of at least 1; argparse names the option of any other."""
    if int(text) < 1:
        raise ValueError(text)
    return int(text)
