"""How a command ends by SIGTERM and SIGINT (Ctrl-C): one line, no file half-written.

The process then ends by the signal itself, so that its status is what a shell expects: 143 and
130. Nothing here imports fairseq or torch.
"""

from __future__ import annotations

import contextlib
import functools
import multiprocessing
import os
import signal
import sys
from types import FrameType
from typing import Any, Callable, Sequence, TypeVar

from ..atomic_files import incomplete, remove, removers, unfinished
from ..checkpoints.folder_lock import locked

SIGNALS = (signal.SIGTERM, signal.SIGINT)
DEFAULT_HANDLERS = (signal.SIG_DFL, signal.default_int_handler)

Result = TypeVar("Result")
Handler = Callable[[int, "FrameType | None"], None]


def exits_cleanly_on_signals(
    program: str, command: Callable[..., Result], signals: Sequence[signal.Signals] = SIGNALS
) -> Callable[..., Result]:
    """Return `command` with handlers for the signals, unless somebody else has set handlers."""

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> Result:
        handler = _handler(program, os.getpid())
        replaced = {}
        for number in signals:
            present = signal.getsignal(number)
            if present in DEFAULT_HANDLERS:  # somebody else's handler stays
                with contextlib.suppress(ValueError):  # not in the main thread
                    signal.signal(number, handler)
                    replaced[number] = present
        try:
            return command(*args, **kwargs)
        finally:
            for number, present in replaced.items():
                signal.signal(number, present)

    return run


def _handler(program: str, owner: int) -> Handler:
    """Return the handler for the process `owner`; its children end without a word."""

    def handle(number: int, frame: FrameType | None) -> None:
        # processes that load data inherit the handler
        if os.getpid() == owner:
            _end_child_processes()
            folder = clean_up()
            # torchrun sends the signal to all workers: the first one speaks for them
            if os.environ.get("RANK", "0") == "0":
                name = signal.Signals(number).name
                line = f"\n{program}: ended by {name}; {_how_to_continue(folder)}\n"
                with contextlib.suppress(OSError, RuntimeError):
                    sys.stdout.flush()
                # os.write: the interrupted code may be inside a write to sys.stderr
                with contextlib.suppress(OSError):
                    os.write(2, line.encode())
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)  # the status that the shell sees is that of the signal

    return handle


def _end_child_processes() -> None:
    """End the processes that load data, which would print that this one has gone, or write sets."""
    # torch's handler raises an exception when one of them ends
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    children = [process for process in multiprocessing.active_children() if process.daemon]
    for process in children:
        process.kill()
    for process in children:
        process.join()  # what it writes is there, and can be removed


def clean_up() -> str | None:
    """Remove what this process has not finished, and its locks; return where it trains into."""
    folder = os.path.dirname(locked[-1]) if locked else None
    for path in (*unfinished, *locked):
        remove(path)
    for remover in removers:
        remover()
    return folder


def _incomplete_files() -> list[str]:
    """Return the names of the files that stay as far as they are written; remove empty ones."""
    names = []
    for file in incomplete:
        # the interrupted code may be inside a write to it
        with contextlib.suppress(OSError, RuntimeError, ValueError):
            file.flush()
        if os.path.exists(file.name) and os.path.getsize(file.name):
            names.append(file.name)
        else:
            remove(file.name)
    return names


def _how_to_continue(folder: str | None) -> str:
    """Return what the command left: a training in `folder`, and what to do next; others, parts."""
    if folder is None:
        names = _incomplete_files()
        return f"{', '.join(names)} is incomplete" if names else "none of its files is half-written"
    last = os.path.join(folder, "checkpoint_last.pt")
    if not os.path.exists(last):
        return f"{folder} has no checkpoint_last.pt yet: the same command starts anew"
    return f"{last} is whole: the same command goes on from it"
