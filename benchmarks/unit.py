"""Speed of the routed unit beside its literal loop and torch's GRU, in one run.

    python benchmarks/unit.py --output build/benchmark/unit

Forward and backward pass over a batch of sequences. The GRU of torch has the width at which its
products have the operations of the unit's. The limit is the time of the unit's matrix products
alone, each kind timed by itself. The candidates take turns; each figure is the median over the
turns. Writes OUTPUT.json and OUTPUT.md.
"""

import math
from argparse import Namespace
from typing import Callable, Dict, Optional, Sequence

import torch
from speed import cli, passes

from fairseq_ext.routed.modules import RoutedUnit

COLUMNS = ("ms", "GFLOP", "GFLOP/s", "share of the limit")


def equal_width(operations: float, size: int) -> int:
    """Return H' such that 3 H' (I + H') is the number of multiplications of a forward step."""
    return round((math.sqrt(size**2 + 4 * operations / 3) - size) / 2)


def candidates(args: Namespace) -> Dict[str, Callable[[], None]]:
    """Return {name: function that does both passes}."""
    torch.manual_seed(1)
    shape = (args.sentences, args.steps, args.size)
    inputs = torch.randn(shape, device=args.device, requires_grad=True)  # (B, T, I)
    unit = RoutedUnit(args.size, args.size, args.shared_blocks).to(args.device)
    blocks = (args.shared_blocks + 1) * 3 * args.size * 2 * args.size
    router = 3 * args.size * args.size + args.size * args.shared_blocks
    width = equal_width(blocks + router, args.size)
    gru = torch.nn.GRU(args.size, width, batch_first=True).to(args.device)

    def both_passes(states: torch.Tensor) -> None:
        states.backward(torch.ones_like(states))

    return {
        "literal loop": lambda: both_passes(unit(inputs, literal=True)[0]),
        "routed unit": lambda: both_passes(unit(inputs)[0]),
        f"torch.nn.GRU, {width} units": lambda: both_passes(gru(inputs)[0]),
    }


def main(arguments: Optional[Sequence[str]] = None) -> None:
    """Measure and report."""
    parser = cli.make_parser(__doc__)
    cli.add_output(parser, "unit")
    cli.add_device(parser)
    parser.set_defaults(device="cpu")
    numbers = {"sentences": 64, "steps": 25, "size": 400, "shared_blocks": 3}
    cli.add_numbers(parser, **numbers, repeats=passes.REPEATS)
    args = parser.parse_args(arguments)
    tokens = args.sentences * args.steps
    results = passes.measure(candidates(args), tokens, args.repeats, args.device)
    sizes = f"{args.sentences} sequences of {args.steps} steps, width {args.size}, "
    sizes += f"{args.shared_blocks}+1 blocks"
    passes.report(args, results, COLUMNS, sizes, args.device)


if __name__ == "__main__":
    cli.run_script(main)
