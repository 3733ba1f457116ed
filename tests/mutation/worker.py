"""Runs the tests of mutants, each in a fork of a process that has imported torch and fairseq.

Started by run.py in a copy of the repository, where the mutated files are written:
``python worker.py TASKS RESULTS``, both files of one JSON object a line.
"""

import contextlib
import json
import os
import signal
import sys
import time
from pathlib import Path

import numpy  # noqa: F401  (imported once for all mutants, as the next ones)
import pytest
import torch  # noqa: F401
from fairseq import checkpoint_utils, options, tasks  # noqa: F401

NO_TESTS = 5


def run_tests(tests, output: str) -> int:
    """Of the child: pytest's status; stops at the first failure."""
    log = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(log, 1)
    os.dup2(log, 2)
    sys.path.insert(0, os.getcwd())
    return int(pytest.main([*tests, "-x", "-q", "-p", "no:cacheprovider"]))


def outcome_of(tests, seconds: float, output: str) -> str:
    """ "survived", "killed" or "timeout" of what is in the folder now."""
    child = os.fork()
    if child == 0:
        status = 70
        with contextlib.suppress(SystemExit):
            os.setsid()
            status = run_tests(tests, output)
        os._exit(status)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        finished, status = os.waitpid(child, os.WNOHANG)
        if finished:
            if os.waitstatus_to_exitcode(status) == NO_TESTS:
                raise SystemExit(f"no tests in {' '.join(tests)}")
            return "survived" if status == 0 else "killed"
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "timeout"


class Mutated:
    """The file with other text meanwhile. Every text has a time of its own, so that Python never
    takes the compiled form of another one for it."""

    times = 1_000_000_000

    def __init__(self, path: str, text: str):
        self.path, self.text = Path(path), text

    def write(self, text: str) -> None:
        self.path.write_text(text, encoding="utf-8")
        Mutated.times += 10
        os.utime(self.path, (self.times, self.times))

    def __enter__(self):
        self.original = self.path.read_text(encoding="utf-8")
        self.write(self.text)

    def __exit__(self, *_error):
        self.write(self.original)


def main(tasks_file: str, results_file: str) -> None:
    """A task: tests, seconds allowed (None: measure), and perhaps path and text of the mutant."""
    output = str(Path(results_file).with_suffix(".out"))
    allowed = {}
    for line in Path(tasks_file).read_text(encoding="utf-8").splitlines():
        task = json.loads(line)
        tests = task["tests"]
        if "text" not in task:
            start = time.monotonic()
            outcome = outcome_of(tests, 900, output)
            seconds = time.monotonic() - start
            allowed[tuple(tests)] = 20 + 5 * seconds
            if outcome != "survived":
                tail = Path(output).read_text(encoding="utf-8")[-2000:]
                raise SystemExit(f"without a mutation: {' '.join(tests)}: {outcome}\n{tail}")
            record = {"baseline": task["path"], "seconds": round(seconds, 1)}
        else:
            with Mutated(task["path"], task["text"]):
                start = time.monotonic()
                outcome = outcome_of(tests, allowed[tuple(tests)], output)
            seconds = round(time.monotonic() - start, 1)
            record = {"mutant": task["mutant"], "outcome": outcome, "seconds": seconds}
        with open(results_file, "a", encoding="utf-8") as results:
            results.write(json.dumps(record) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
