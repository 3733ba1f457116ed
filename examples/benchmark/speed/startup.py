"""How long the commands take to start, without the plugin and with it."""

import os
import statistics
import subprocess
import sys
import time

from . import REPOSITORY

HELP = "import sys; sys.argv[1:] = {words!r}; from fairseq_cli.train import cli_main; cli_main()"
# -S: no start-up files, so that the compatibility layer is not loaded; fairseq 0.12.2 does not
# start without it on newer versions of Python
WAYS = {
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


def startup(repeats: int, say=print):
    """Return {command: {way: seconds, or None where it fails}}; the ways take turns."""
    turns = {way: [] for way in WAYS}
    hook = []
    for turn in range(repeats + 1):
        for way, (options, words) in WAYS.items():
            seconds, output = run([*options, "-c", HELP.format(words=words)])
            if turn and output is not None:  # the first fills the disk's cache
                turns[way].append(seconds)
        hook.append(float(run(["-S", "-c", HOOK])[1]))
    medians = {way: statistics.median(taken) if taken else None for way, taken in turns.items()}
    for way, seconds in medians.items():
        say(f"fairseq-train --help, {way}: {'fails' if seconds is None else f'{seconds:.3f} s'}")
    return {
        "fairseq-train --help": medians,
        "any process": {"compatibility layer": statistics.median(hook)},
    }


def run(words):
    """Return (seconds, output) of a Python process with the import path of this one.

    The output is None where the process fails.
    """
    path = os.pathsep.join([str(REPOSITORY), *(entry for entry in sys.path if entry)])
    environment = {**os.environ, "PYTHONPATH": path}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # installed files are compiled
    start = time.perf_counter()
    finished = subprocess.run(
        [sys.executable, *words],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        encoding="utf-8",
    )
    seconds = time.perf_counter() - start
    return seconds, None if finished.returncode else finished.stdout
