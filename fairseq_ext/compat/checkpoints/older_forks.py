"""Forks of fairseq before 0.12: checkpoints that torch reads as data, integers of the search."""

from __future__ import annotations

import argparse
import collections
import importlib
from typing import Any

from ..module_overlay import overlay_names
from ..patch_registry import PatchedModule, has_older_fairseq, patch, since

# {module: classes in it that checkpoints of 0.9 and 0.10 hold}
STORED = {
    "fairseq.data.dictionary": ("Dictionary",),
    "fairseq.meters": ("AverageMeter", "StopwatchMeter", "TimeMeter"),
    "fairseq.logging.meters": ("AverageMeter", "StopwatchMeter", "TimeMeter"),
}


@patch(
    "fairseq.checkpoint_utils",
    because="torch 2.6 reads checkpoints as data only: forks of fairseq 0.9 and 0.10 fail with "
    "'Unsupported global: GLOBAL argparse.Namespace'",
    conditions=[since("torch", 2, 6)],
    for_older=True,
)
def older_forks_read_their_checkpoints(module: PatchedModule) -> None:
    """Add what checkpoints of the fork hold to torch's list of what may be read."""
    if has_older_fairseq():
        module.torch.serialization.add_safe_globals(classes_of_older_checkpoints())


def classes_of_older_checkpoints() -> list[Any]:
    """Return the classes of STORED that the fork has, and those of options."""
    classes: list[Any] = [argparse.Namespace, collections.OrderedDict, collections.defaultdict]
    for place, names in STORED.items():
        try:
            holder = importlib.import_module(place)
        except ImportError:  # one of the two modules of meters
            continue
        classes += [getattr(holder, name) for name in names if hasattr(holder, name)]
    return classes


@patch(
    "fairseq.search",
    because="torch 1.5 divides integers as floats: beam search of forks of fairseq 0.9 fails with "
    '"result type Float can\'t be cast to the desired output type Long"',
    for_older=True,
)
def older_searches_divide_integers(module: PatchedModule) -> None:
    """Show the search of the fork a torch whose div of integers is an integer."""
    if not has_older_fairseq():
        return
    stock = module.torch.div

    def div(first: Any, second: Any, **options: Any) -> Any:
        if not first.is_floating_point() and isinstance(second, int):
            options.setdefault("rounding_mode", "floor")
        return stock(first, second, **options)

    overlay_names(module, "torch", div=div)
