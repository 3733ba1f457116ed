"""A ``Member`` in a process of its own: `python worker.py` reads calls and answers, in JSON lines.

Each system has its own memory, threads and caching allocator; while one works, the others wait for
their next line.
"""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from argparse import Namespace
from pathlib import Path

from recipe_tools import RecipeError

FOLDER = Path(__file__).resolve().parent


class WorkerError(RecipeError):
    """The process of a system ended; the message has its name and the end of its output."""


class Remote:
    """Calls to a ``Member`` in another process. Close it, or use it in `with`.

    first_update: seconds from the start of the process to the end of the first update.
    """

    def __init__(self, row, data, folder, args):
        self.name, self.log = row.name, tempfile.TemporaryFile()
        environment = {**os.environ, "OMP_NUM_THREADS": str(args.threads)}
        environment["MKL_NUM_THREADS"] = str(args.threads)
        start = time.perf_counter()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "speed.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            cwd=FOLDER.parent,
            env=environment,
            encoding="utf-8",
        )
        try:
            self._ask([row._asdict(), str(data), str(folder), vars(args)])
            self.call("first")
        except BaseException:
            self.close()
            raise
        self.first_update = time.perf_counter() - start

    def call(self, method: str, *arguments):
        """Return what ``Member.method(*arguments)`` returns. WorkerError when its process ends."""
        return self._ask([method, *arguments])

    def _ask(self, question):
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(json.dumps(question) + "\n")
            self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            status = self.process.wait()
            self.log.seek(0)
            tail = self.log.read().decode("utf-8", errors="replace").splitlines()[-20:]
            raise WorkerError("\n".join([f"{self.name}: ended with status {status}", *tail]))
        return json.loads(answer)

    def close(self) -> None:
        """End the process."""
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        try:
            self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.log.close()


class Inline:
    """The same calls in this process: for short measurements, and for tests."""

    def __init__(self, row, data, folder, args):
        from .systems import Member

        start = time.perf_counter()
        self.name, self.member = row.name, Member(row, data, folder, args)
        self.call("first")
        self.first_update = time.perf_counter() - start

    def call(self, method: str, *arguments):
        return getattr(self.member, method)(*arguments)

    def close(self) -> None:
        pass


def serve(questions, answers) -> None:
    """Build the member that the first line describes; answer the calls of the others."""
    from .families import Row
    from .systems import Member, prepare

    row, data, folder, settings = json.loads(next(questions))
    args = Namespace(**settings)
    prepare(args.precision, args.threads)
    member = Member(Row(**row), data, folder, args)
    _say(answers, None)
    for line in questions:
        method, *arguments = json.loads(line)
        _say(answers, getattr(member, method)(*arguments))


def _say(answers, value) -> None:
    answers.write(json.dumps(value) + "\n")
    answers.flush()


if __name__ == "__main__":
    # what fairseq prints must not come between the answers
    own = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    serve(sys.stdin, own)
