"""The processes of fairseq-preprocess --workers: the end of each is noticed, whatever ends it."""

from __future__ import annotations

import multiprocessing
import signal
from multiprocessing.connection import wait
from multiprocessing.pool import ExceptionWithTraceback  # type: ignore[attr-defined]
from typing import TYPE_CHECKING, Any, Callable, Mapping, Sequence

from ..patch_registry import PatchedModule, patch

if TYPE_CHECKING:
    from multiprocessing.connection import Connection


def _call(
    outcome: Connection, function: Callable[..., Any], args: Sequence[Any], named: Mapping[str, Any]
) -> None:
    """Send (True, what the function returns) or (False, what it raises)."""
    try:
        message = True, function(*args, **named)
    except Exception as error:  # noqa: BLE001 (as multiprocessing.Pool: who asks for it gets it)
        message = False, ExceptionWithTraceback(error, error.__traceback__)
    outcome.send(message)


class Part:
    """A part of a file, which a process of its own reads.

    Attributes:
        process: it. outcome: the end of the pipe from which its outcome is read.
        message: the outcome, as `_call` sends it; None until it is there.
    """

    def __init__(
        self, function: Callable[..., Any], args: Sequence[Any], named: Mapping[str, Any]
    ) -> None:
        file, *places = (value for value in args if isinstance(value, (str, int)))
        start, end = (place for place in places if isinstance(place, int))
        self.name = f"bytes {start:,} to {end:,} of {file}"
        self.message: tuple[bool, Any] | None = None
        self.outcome, sender = multiprocessing.Pipe(duplex=False)
        self.process = multiprocessing.Process(
            target=_call, args=(sender, function, args, named), daemon=True
        )
        self.process.start()
        sender.close()  # only the process has it now, whose end closes it

    def receive(self) -> None:
        """Read the outcome; ChildProcessError where the process has ended without one."""
        try:
            self.message = self.outcome.recv()
        except (EOFError, ConnectionError):
            self.process.join()
            code = self.process.exitcode or 0
            ended = signal.Signals(-code).name if code < 0 else f"status {code}"
            raise ChildProcessError(
                f"{self.name}: the process that read them died ({ended}); the others were ended"
            ) from None

    def get(self) -> Any:
        """Return what the function has returned, or raise what it has raised."""
        assert self.message is not None  # of a pool that has been joined
        succeeded, value = self.message
        if succeeded:
            return value
        raise value


class Parts:
    """What fairseq uses of a multiprocessing.Pool that has a process for each call."""

    def __init__(self, processes: int | None = None) -> None:
        self._parts: list[Part] = []

    def apply_async(
        self,
        function: Callable[..., Any],
        args: Sequence[Any] = (),
        kwds: Mapping[str, Any] | None = None,
    ) -> Part:
        """Call a function on a part of a file: among its arguments the file and two places."""
        self._parts.append(Part(function, args, kwds or {}))
        return self._parts[-1]

    def close(self) -> None:
        """Do nothing: no process waits for another call."""

    def join(self) -> None:
        """Wait for all; ChildProcessError, and the end of the others, where one of them dies."""
        waiting = {part.outcome: part for part in self._parts}
        try:
            while waiting:
                for outcome in wait(list(waiting)):
                    waiting.pop(outcome).receive()  # type: ignore[call-overload]
            for part in self._parts:
                part.process.join()
        except BaseException:
            for part in self._parts:
                part.process.kill()
            raise


@patch(
    "fairseq.binarizer",
    "fairseq.data.dictionary",
    because="fairseq 0.12.2: fairseq-preprocess --workers waits forever when one of its processes "
    "is killed, for example where memory is short",
)
def dead_processes_are_noticed(module: PatchedModule) -> None:
    """Read each part of a file in a process whose end is noticed."""
    if hasattr(module, "Pool"):
        module.Pool = Parts
