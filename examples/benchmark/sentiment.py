"""Training speed of the classifier and the language model that share an LSTM, in one run.

    python examples/benchmark/sentiment.py --output build/sentiment
    python examples/benchmark/sentiment.py --embed-dim 500 --hidden-size 1024 --steps 230

Forward and backward pass of an update over texts of one length (fairseq's batches hold texts of
similar length). The limit is the time of the update's matrix products alone, each kind timed by
itself. The systems take turns; each figure is the median over the turns. Writes
build/sentiment.json and build/sentiment.md.
"""

import argparse
import json
import statistics
import sys
import time
from pathlib import Path

import torch
from products import Products
from run import REPOSITORY, processor, today, write
from torch.nn import functional as F

COLUMNS = ("ms", "tokens/s", "MFLOP/token", "GFLOP/s", "share of the limit")
PAD, END, FIRST = 1, 2, 4
LABELS = 2


def losses(args):
    """{system: function that computes the loss of a batch}."""
    sys.path.insert(0, str(REPOSITORY))
    from fairseq_ext.common.losses import label_smoothed_cross_entropy
    from fairseq_ext.dual.lstm_modules import DualLSTM, Size

    size = Size(args.embed_dim, args.hidden_size, args.dropout)
    network = DualLSTM(size, args.words, LABELS, PAD).train()
    shape = (args.sentences, args.steps)
    target = torch.randint(FIRST, args.words, shape)
    end = torch.full((args.sentences, 1), END)
    previous = torch.cat([end, target[:, :-1]], dim=1)
    lengths = torch.full((args.sentences,), args.steps)
    label = torch.randint(LABELS, (args.sentences,))
    y = F.one_hot(label, LABELS).float()

    def classifier():
        scores = network.label_logits(network.read(previous, lengths))
        return label_smoothed_cross_entropy(scores, label, 0.0, -1)[0].mean()

    def generator():
        scores = network.logits(network.states(previous, y)[0]).flatten(0, 1)
        return label_smoothed_cross_entropy(scores, target.flatten(), 0.0, PAD)[0].mean()

    def update(*directions):
        for direction in directions:
            direction().backward()
        network.zero_grad()

    return {
        "classifier": lambda: update(classifier),
        "generator": lambda: update(generator),
        "dual": lambda: update(classifier, generator),
    }


def seconds(compute) -> float:
    start = time.perf_counter()
    compute()
    return time.perf_counter() - start


def measure(args):
    """{system: {column: value}}"""
    torch.manual_seed(1)
    found, tokens = losses(args), args.sentences * args.steps
    turns = {name: [] for name in found}
    for turn in range(args.repeats + 1):
        for name, compute in found.items():
            taken = seconds(compute)
            if turn:  # the first is the warm-up
                turns[name].append(taken)
    results = {}
    for name, compute in found.items():
        with Products(tokens) as products:
            compute()
        taken, operations = statistics.median(turns[name]), products.operations()
        results[name] = {
            "ms": round(taken * 1e3, 1),
            "tokens/s": round(tokens / taken),
            "MFLOP/token": round(operations / tokens / 1e6, 2),
            "GFLOP/s": round(operations / taken / 1e9, 1),
            "share of the limit": round(products.seconds() / taken, 3),
        }
    return results


def table(args, results) -> str:
    lines = [
        f"{today()}, {processor()}, {torch.get_num_threads()} thread(s), "
        f"torch {torch.__version__}; "
        f"{args.sentences} texts of {args.steps} tokens, D = {args.embed_dim}, "
        f"H = {args.hidden_size}, {args.words} words; medians of {args.repeats}.",
        "",
        "| forward and backward pass | " + " | ".join(COLUMNS) + " |",
        "|---" * (len(COLUMNS) + 1) + "|",
    ]
    for name, found in results.items():
        lines.append(f"| {name} | " + " | ".join(str(found[column]) for column in COLUMNS) + " |")
    return "\n".join(lines) + "\n"


def main(arguments=None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", default=str(REPOSITORY / "build" / "sentiment"))
    parser.add_argument("--dropout", type=float, default=0.3, help="(default 0.3)")
    for option, value in (
        *(("--sentences", 50), ("--steps", 101), ("--embed-dim", 128), ("--hidden-size", 128)),
        *(("--words", 10008), ("--repeats", 7)),
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
