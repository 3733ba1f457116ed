"""How long the commands take to start, without the plugin and with it."""

import os
import statistics
import subprocess
import sys
import time
from typing import Dict, List, Optional, Sequence, Tuple

from . import REPOSITORY
from .harness import Say

HELP = "import sys; sys.argv[1:] = {words!r}; from fairseq_cli.train import cli_main; cli_main()"
# -S: no start-up files, so that the compatibility layer is not loaded; fairseq 0.12.2 does not
# start without it on newer versions of Python
WAYS: Dict[str, Tuple[List[str], List[str]]] = {
    "stock": (["-S"], ["--help"]),
    "compatibility layer": ([], ["--help"]),
    "--user-dir": ([], ["--help", "--user-dir", str(REPOSITORY / "fairseq_ext")]),
}
# what the layer costs a process that never imports fairseq, timed inside of it
HOOK = """
import time
start = time.perf_counter()
import _fairseq_ext_hook
print(time.perf_counter() - start)
"""


def startup(repeats: int, say: Say = print) -> Dict[str, Dict[str, Optional[float]]]:
    """Return {command: {way: seconds, or None where it fails}}; the ways take turns."""
    turns: Dict[str, List[float]] = {way: [] for way in WAYS}
    hook = []
    for turn in range(repeats + 1):
        for way, (options, words) in WAYS.items():
            seconds, output = run([*options, "-c", HELP.format(words=words)])
            if turn and output is not None:  # the first fills the disk's cache
                turns[way].append(seconds)
        hook_seconds = run(["-S", "-c", HOOK])[1]
        assert hook_seconds is not None  # the start-up file is beside the package
        hook.append(float(hook_seconds))
    medians = {way: statistics.median(taken) if taken else None for way, taken in turns.items()}
    for way, median in medians.items():
        say(f"fairseq-train --help, {way}: {'fails' if median is None else f'{median:.3f} s'}")
    return {
        "fairseq-train --help": medians,
        "any process": {"compatibility layer": statistics.median(hook)},
    }


def run(words: Sequence[str]) -> Tuple[float, Optional[str]]:
    """Return (seconds, output) of a Python process with the import path of this one.

    The output is None where the process fails.
    """
    path = os.pathsep.join([str(REPOSITORY), *filter(None, sys.path)])
    environment = {**os.environ, "PYTHONPATH": path}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # installed files are compiled
    command, start = [sys.executable, *words], time.perf_counter()
    finished = subprocess.run(command, env=environment, capture_output=True, encoding="utf-8")
    return time.perf_counter() - start, None if finished.returncode else finished.stdout
