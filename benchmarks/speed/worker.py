"""A ``Member`` in a process of its own, with its own memory, threads and caching allocator."""

import time
from argparse import Namespace
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Callable, List

from fairseq_ext.tools import UsageError

from .families import Row
from .systems import Member, prepare

# the only member of a worker's process
_members: List[Member] = []


class Worker:
    """Calls to a ``Member`` in another process.

    While one worker computes, the others wait for their next call.
    first_update: seconds from the start of the process to the end of the first update.
    """

    def __init__(self, row: Row, data: Path, folder: Path, args: Namespace):
        self.name = row.name
        self._process = ProcessPoolExecutor(1, mp_context=get_context("spawn"))
        start = time.perf_counter()
        self._run(_build, row, data, folder, args)
        self.call("first")
        self.first_update = time.perf_counter() - start

    def call(self, method: str, *arguments: Any) -> Any:
        """Return what ``Member.method(*arguments)`` returns. Raises what it raises.

        Raises UsageError where the process ended, as one without memory is made to.
        """
        return self._run(_call, method, *arguments)

    def _run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return self._process.submit(function, *arguments).result()
        except BrokenExecutor as error:
            raise UsageError(f"{self.name}: its process ended ({error})") from error

    def close(self) -> None:
        """End the process."""
        self._process.shutdown()


def _build(row: Row, data: Path, folder: Path, args: Namespace) -> None:
    prepare(args.precision, args.threads)
    _members.append(Member(row, data, folder, args))


def _call(method: str, *arguments: Any) -> Any:
    return getattr(_members[0], method)(*arguments)
