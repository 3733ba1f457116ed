"""Training speed of the classifier and the language model that share an LSTM, in one run.

    python benchmarks/sentiment.py --output build/benchmark/sentiment
    python benchmarks/sentiment.py --embed-dim 500 --hidden-size 1024 --steps 230

Forward and backward pass of an update over texts of one length (fairseq's batches hold texts of
similar length). The limit is the time of the update's matrix products alone, each kind timed by
itself. The systems take turns; each figure is the median over the turns. Writes
OUTPUT.json and OUTPUT.md.
"""

from argparse import Namespace
from typing import Callable, Dict, Optional, Sequence

import torch
from speed import cli, passes
from torch.nn import functional as F

from fairseq_ext.common.losses import label_smoothed_cross_entropy
from fairseq_ext.dual.lstm_classifier.modules import DualLSTM, DualLSTMSize

COLUMNS = ("ms", "tokens/s", "MFLOP/token", "GFLOP/s", "share of the limit")
PAD, END, FIRST = 1, 2, 4
LABELS = 2


def candidates(args: Namespace) -> Dict[str, Callable[[], None]]:
    """Return {system: function that does both passes of an update}."""
    torch.manual_seed(1)
    size = DualLSTMSize(args.embed_dim, args.hidden_size, args.dropout)
    network = DualLSTM(size, args.words, LABELS, PAD).train()
    shape = (args.sentences, args.steps)
    target = torch.randint(FIRST, args.words, shape)  # (B, T)
    end = torch.full((args.sentences, 1), END)
    previous = torch.cat([end, target[:, :-1]], dim=1)
    lengths = torch.full((args.sentences,), args.steps)
    label = torch.randint(LABELS, (args.sentences,))
    y = F.one_hot(label, LABELS).float()  # (B, L)

    def classifier() -> torch.Tensor:
        scores = network.label_logits(network.read(previous, lengths))
        return label_smoothed_cross_entropy(scores, label, 0.0, -1)[0].mean()

    def generator() -> torch.Tensor:
        scores = network.logits(network.states(previous, y)[0]).flatten(0, 1)
        return label_smoothed_cross_entropy(scores, target.flatten(), 0.0, PAD)[0].mean()

    def update(*directions: Callable[[], torch.Tensor]) -> None:
        for direction in directions:
            direction().backward()
        network.zero_grad()

    return {
        "classifier": lambda: update(classifier),
        "generator": lambda: update(generator),
        "dual": lambda: update(classifier, generator),
    }


def main(arguments: Optional[Sequence[str]] = None) -> None:
    """Measure and report."""
    parser = cli.make_parser(__doc__)
    cli.add_output(parser, "sentiment")
    parser.add_argument("--dropout", type=float, default=0.3, help="dropout rate (default 0.3)")
    numbers = {"embed_dim": 128, "hidden_size": 128, "words": 10008, "repeats": passes.REPEATS}
    cli.add_numbers(parser, sentences=50, steps=101, **numbers)
    args = parser.parse_args(arguments)
    results = passes.measure(candidates(args), args.sentences * args.steps, args.repeats)
    sizes = f"{args.sentences} texts of {args.steps} tokens, D = {args.embed_dim}, "
    sizes += f"H = {args.hidden_size}, {args.words} words"
    passes.report(args, results, COLUMNS, sizes)


if __name__ == "__main__":
    cli.run_script(main)
