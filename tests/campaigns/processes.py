"""fairseq-train in processes that are forked with everything imported, and their ends.

A child kills itself within a write where it is told so; it is killed from outside otherwise.
"""

import os
import random
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import List, Optional

MOMENTS = ("bytes", "fsync", "replace", "after")


def start(words: List[str], log: Path, kill_in_write: Optional[int] = None) -> int:
    """Start a training and return its process number.

    kill_in_write: a number that chooses the write and the moment in it; None: nowhere.
    """
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        with open(log, "ab", buffering=0) as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        if kill_in_write is not None:
            _kill_in_write(random.Random(kill_in_write))
        sys.argv = ["fairseq-train", *words]
        from fairseq_cli import train

        train.cli_main()
        status = 0
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else 1
    finally:
        if sys.exc_info()[0] is not None:
            traceback.print_exc()
        sys.stdout.flush()
        os._exit(status)


def _die(*_):
    os.kill(os.getpid(), signal.SIGKILL)


def _kill_in_write(rng: random.Random) -> None:
    """Let one of the next writes of a checkpoint end in the middle."""
    from fairseq_ext.compat import atomic_files

    left, moment = [rng.randint(1, 8)], rng.choice(MOMENTS)
    file_class = atomic_files.ErrorRecordingFile
    limit, stock_init = rng.randint(1, 60_000), file_class.__init__
    stock_write, stock_replace, stock_fsync = file_class.write, os.replace, os.fsync
    written = [0]

    def begin(self, file):
        stock_init(self, file)
        left[0] -= 1

    def write(self, data):
        written[0] += len(data)
        if left[0] == 0 and moment == "bytes" and written[0] > limit:
            self.file.write(bytes(data)[: len(data) // 2])
            self.file.flush()
            _die()
        return stock_write(self, data)

    def fsync(descriptor):
        if left[0] == 0 and moment == "fsync":
            _die()
        return stock_fsync(descriptor)

    def replace(*paths):
        if left[0] == 0 and moment == "replace":
            _die()
        stock_replace(*paths)
        if left[0] == 0 and moment == "after":
            _die()

    file_class.__init__, file_class.write = begin, write
    os.fsync, os.replace = fsync, replace


def wait(child: int, seconds: Optional[float] = None) -> Optional[int]:
    """The status of a process as subprocess gives it; None when it still runs after `seconds`."""
    end = None if seconds is None else time.time() + seconds
    while True:
        done, status = os.waitpid(child, 0 if end is None else os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        if time.time() >= end:
            return None
        time.sleep(0.005)


def kill(child: int) -> None:
    """SIGKILL, and wait for the end."""
    os.kill(child, signal.SIGKILL)
    wait(child)
