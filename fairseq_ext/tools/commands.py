"""The table of the sub-commands of `fairseq-ext`: the tools for all, and what systems register.

A system with commands has a folder `SYSTEM/commands/`. Its `__init__.py` holds nothing but

    COMMANDS = {NAME: (ENTRY_POINT, SUMMARY)}   `MODULE:FUNCTION` of that folder
    EXPORTERS = (MODULE, ...)                   for `fairseq-ext export`, if there are any

and is read here as a file: importing a system would import torch, which `fairseq-ext --help` and
`fairseq-ext user-dir` do without.
"""

import runpy
from pathlib import Path
from typing import Any, Dict, List, NamedTuple

# what --user-dir names
PACKAGE = Path(__file__).resolve().parents[1]
# the group of the commands in this folder
ALL_SYSTEMS = "all systems"


class Command(NamedTuple):
    """A sub-command.

    entry_point: `MODULE:FUNCTION`, the module relative to this package. The module has
    `add_arguments(parser)`, and the function takes the arguments and returns the exit status.
    summary: one line of help. group: the system that it belongs to, or `ALL_SYSTEMS`.
    """

    entry_point: str
    summary: str
    group: str = ALL_SYSTEMS

    @property
    def module(self) -> str:
        """Return the module of the entry point, relative to this package."""
        return self.entry_point.partition(":")[0]

    @property
    def function(self) -> str:
        """Return the name of the function in that module."""
        return self.entry_point.partition(":")[2]


TOOLS = {
    "user-dir": Command(
        "tools.installation.user_dir:print_user_dir",
        "print the path to give to fairseq's --user-dir",
    ),
    "list": Command(
        "tools.installation.listing:list_registered",
        "list what is registered, by system, or the options of one entry",
    ),
    "doctor": Command(
        "tools.installation.doctor:diagnose",
        "check this installation and say what to do about problems",
    ),
    "run": Command(
        "tools.installation.launch:launch_command",
        "run a stock fairseq command, also where .pth files are not read",
    ),
    "export": Command(
        "tools.export.command:export_model",
        "write one direction, or a forward network, for other programs",
    ),
    "plot": Command("tools.curves.plot:plot_curves", "draw training curves from a training log"),
    "compare": Command(
        "tools.curves.compare:compare_runs",
        "learning curves of several runs, by update and by time",
    ),
    "evaluate": Command(
        "tools.evaluate.command:evaluate_translations",
        "score translations, and test the differences of systems",
    ),
    "average": Command(
        "tools.checkpoint.average:average_checkpoints",
        "average the parameters of several checkpoints",
    ),
    "back-translate": Command(
        "tools.back_translation.command:back_translate",
        "make synthetic pairs of monolingual text, with a trained model",
    ),
    "pack": Command(
        "tools.packing.command:pack_model",
        "put a trained model into one folder, for use elsewhere",
    ),
    "translate": Command(
        "tools.translation.command:translate_text",
        "translate a file of plain text, line by line",
    ),
    "serve": Command(
        "tools.serving.command:serve_models",
        "answer requests over HTTP, with a page that shows what a model does",
    ),
}


def registrations() -> Dict[str, Dict[str, Any]]:
    """Return {system: the names that its `commands/__init__.py` defines}, sorted by system."""
    files = sorted(PACKAGE.glob("*/commands/__init__.py"))  # sorted: the order of --help
    return {path.parents[1].name: runpy.run_path(str(path)) for path in files}


def command_table() -> Dict[str, Command]:
    """Return {name: sub-command}: those for all systems first, then system by system."""
    table = dict(TOOLS)
    for system, names in registrations().items():
        for name, (entry_point, summary) in names["COMMANDS"].items():
            if name in table:  # the later would hide the earlier
                raise ValueError(f"{system}: the command {name} exists already")
            table[name] = Command(f"{system}.commands.{entry_point}", summary, system)
    return table


def exporter_modules() -> List[str]:
    """Return the modules, relative to this package, that `fairseq-ext export` asks."""
    return [
        f"{system}.commands.{module}"
        for system, names in registrations().items()
        for module in names.get("EXPORTERS", ())
    ]
