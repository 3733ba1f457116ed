"""Forward and backward passes of a layer or a model alone, without fairseq around them."""

import statistics
from argparse import Namespace
from typing import Any, Callable, Dict, Mapping, Sequence

import torch

from .harness import Figures, in_turns
from .products import Products, timed
from .report import circumstances, heading, publish, settings_of, table

REPEATS = 7


def measure(
    candidates: Mapping[str, Callable[[], None]], tokens: int, repeats: int, device: str = "cpu"
) -> Dict[str, Figures]:
    """Return {name: figures} of functions that do both passes over so many tokens, in turns."""
    turns = in_turns(candidates, lambda compute: (timed(compute, 1, device), 1), repeats)
    results = {}
    for name, compute in candidates.items():
        with Products(tokens) as products:
            compute()
        seconds, operations = statistics.median(turns[name]), products.operations()
        results[name] = {
            "ms": seconds * 1e3,
            "tokens/s": tokens / seconds,
            "GFLOP": operations / 1e9,
            "MFLOP/token": operations / tokens / 1e6,
            "GFLOP/s": operations / seconds / 1e9,
            "share of the limit": products.seconds() / seconds,
        }
    return results


def report(
    args: Namespace,
    results: Mapping[str, Figures],
    columns: Sequence[str],
    sizes: str,
    device: str = "cpu",
    what: str = "forward and backward pass",
) -> None:
    """Print the columns, and write them and all figures to --output; what: title of the rows."""
    record: Dict[str, Any] = {
        **circumstances(device),
        "threads": torch.get_num_threads(),
        "settings": settings_of(args, "output"),
        "results": results,
    }
    lines = [[name, *(figures[column] for column in columns)] for name, figures in results.items()]
    text = f"{heading(record)}, {record['threads']} thread(s); {sizes}; medians of {args.repeats}."
    publish(record, f"{text}\n\n{table([what, *columns], lines)}", args.output)
