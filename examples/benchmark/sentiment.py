"""Training speed of the classifier and the language model that share an LSTM, in one run.

    python examples/benchmark/sentiment.py --output build/benchmark/sentiment
    python examples/benchmark/sentiment.py --embed-dim 500 --hidden-size 1024 --steps 230

Forward and backward pass of an update over texts of one length (fairseq's batches hold texts of
similar length). The limit is the time of the update's matrix products alone, each kind timed by
itself. The systems take turns; each figure is the median over the turns. Writes
OUTPUT.json and OUTPUT.md.
"""

import argparse
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

import torch
from recipe_tools.cli import script
from speed import REPOSITORY, passes
from torch.nn import functional as F

COLUMNS = ("ms", "tokens/s", "MFLOP/token", "GFLOP/s", "share of the limit")
PAD, END, FIRST = 1, 2, 4
LABELS = 2


def candidates(args):
    """Return {system: function that does both passes of an update}."""
    from fairseq_ext.common.losses import label_smoothed_cross_entropy
    from fairseq_ext.dual.lstm_classifier.modules import DualLSTM, DualLSTMSize

    torch.manual_seed(1)
    size = DualLSTMSize(args.embed_dim, args.hidden_size, args.dropout)
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


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default = REPOSITORY / "build" / "benchmark" / "sentiment"
    parser.add_argument("--output", type=Path, default=default, help="name of the output files")
    parser.add_argument("--dropout", type=float, default=0.3, help="dropout rate (default 0.3)")
    passes.add_numbers(
        parser,
        sentences=50,
        steps=101,
        embed_dim=128,
        hidden_size=128,
        words=10008,
        repeats=passes.REPEATS,
    )
    args = parser.parse_args(arguments)
    results = passes.measure(candidates(args), args.sentences * args.steps, args.repeats)
    sizes = f"{args.sentences} texts of {args.steps} tokens, D = {args.embed_dim}, "
    sizes += f"H = {args.hidden_size}, {args.words} words"
    passes.report(args, results, COLUMNS, sizes)


if __name__ == "__main__":
    script(main)
