"""What a system offers to `fairseq-ext export`.

A system names the modules with its exporters in its `commands/__init__.py`; each of them has a
function ``exporters() -> Exporters``.
"""

import importlib
from argparse import Namespace
from typing import Any, Dict, NamedTuple, Optional, Protocol, Tuple, Union

from torch import Tensor

from ...compat.checkpoints.dictionary_digests import ENTRY, stored_digests
from ..commands import exporter_modules

Parameters = Dict[str, Tensor]
# a checkpoint as `checkpoint/reading.py` gives it, or as fairseq writes it
Checkpoint = Dict[str, Any]
# the groups of a configuration: a dict, or the Namespace of a legacy model's options
Group = Union[Dict[str, Any], Namespace]


def namespace_of(options: Group) -> Namespace:
    """Return the options of a model without a dataclass; fairseq-hydra-train stores a dict."""
    return options if isinstance(options, Namespace) else Namespace(**options)


class DirectionExporter(Protocol):
    """Makes a stock model of one direction of a model of several."""

    def lack(self, state: Checkpoint, source: str, target: str) -> Optional[str]:
        """Return what the checkpoint has instead of the direction, for an error, or None."""

    def embeddings(self, source: str, target: str) -> Dict[str, str]:
        """Return {language: name of its embedding in the checkpoint}."""

    def parameters(self, parameters: Parameters, source: str, target: str) -> Parameters:
        """Return the state dict of the stock model; KeyError names a parameter without a place."""

    def config(
        self, model: Any, criterion: Dict[str, Any], task: Dict[str, Any], source: str, target: str
    ) -> Dict[str, Group]:
        """Return what fairseq-train would store as `cfg`, from these groups of the checkpoint's.

        Args:
            model, criterion, task: the groups of the checkpoint's configuration; ``criterion`` is
                empty where it has none.
            source, target: the languages of the direction.
        """


def stock_checkpoint(
    exporter: DirectionExporter,
    state: Checkpoint,
    parameters: Parameters,
    direction: Tuple[str, str],
    origin: str,
) -> Checkpoint:
    """Return a whole stock checkpoint of one direction, without optimiser state.

    state: the checkpoint; parameters: its model's state dict, or its moving average's; direction:
    (source, target); origin: the checkpoint's name, stored in `extra_state` beside the digests of
    the direction's dictionaries.
    Raises KeyError as `DirectionExporter.parameters` does.
    """
    cfg = state["cfg"]
    config = exporter.config(cfg["model"], cfg.get("criterion") or {}, cfg["task"], *direction)
    # fairseq reads the last entry, the number of updates in it, also where no optimiser is stored
    history = dict(state["optimizer_history"][-1], lr_scheduler_state={})
    digests = {name: text for name, text in stored_digests(state).items() if name in direction}
    return {
        "args": None,  # of checkpoints from before fairseq 0.10
        "cfg": config,
        "model": exporter.parameters(parameters, *direction),
        "criterion": None,
        "optimizer_history": [history],
        "task_state": {},
        "extra_state": {
            "exported_from": {"file": origin, "direction": "-".join(direction)},
            ENTRY: digests,
        },
        "last_optimizer_state": None,
    }


class WholeExporter(Protocol):
    """Makes a checkpoint for fairseq of a whole model, without what only its training needed."""

    def plain_checkpoint(
        self, state: Checkpoint, parameters: Parameters, model: str, origin: str
    ) -> Checkpoint:
        """Return the checkpoint; ``origin`` is the file name of the old one."""

    def usage(self, stock: Checkpoint, output: str) -> str:
        """Return the command that uses the exported file, in words of a shell."""


class Exporters(NamedTuple):
    """{registered model: exporter}: of models of several directions, and of those taken whole."""

    directions: Dict[str, DirectionExporter]
    whole: Dict[str, WholeExporter]


def all_exporters() -> Exporters:
    """Return the exporters of all systems, in the order of the systems' names."""
    exporters = Exporters({}, {})
    for name in exporter_modules():
        # this file is PACKAGE.tools.export.protocol; the package may have any name (--user-dir)
        module = importlib.import_module(f"{__name__.partition('.')[0]}.{name}")
        offered: Exporters = module.exporters()
        exporters.directions.update(offered.directions)
        exporters.whole.update(offered.whole)
    return exporters
