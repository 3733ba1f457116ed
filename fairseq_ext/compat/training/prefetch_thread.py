"""The thread that reads batches ahead ends before Python does.

fairseq's BackgroundConsumer is a daemon thread: at the end of the process it may be inside torch,
where it holds no lock of Python's. When it comes back, Python 3.13 and older end it by unwinding
its stack, which runs through functions of C++ that must not throw: `terminate called without an
active exception`, status 134, though all work is done.
"""

from __future__ import annotations

import atexit
import queue
import threading
import weakref
from typing import Any, Iterable, Iterator, TypeVar

from ..patch_registry import PatchedModule, patch

Item = TypeVar("Item")

# how long the end of the process waits for a batch that is being built
JOIN_SECONDS = 60.0


@patch(
    "fairseq.data.iterators",
    because="fairseq 0.12.2: the process aborts with status 134 when it ends while the thread "
    "that reads ahead is inside torch",
)
def reading_ahead_ends_with_the_command(module: PatchedModule) -> None:
    """Stop the threads of BufferedIterator at the end of the process, and wait for them."""
    stock: Any = module.BackgroundConsumer
    running: weakref.WeakSet[Any] = weakref.WeakSet()  # keeps no finished consumer alive

    class BackgroundConsumer(stock):
        def __init__(
            self,
            queue: queue.Queue[Any],
            source: Iterable[Any],
            max_len: int,
            cuda_device: int | None,
        ) -> None:
            super().__init__(queue, source, max_len, cuda_device)
            self._stopping = threading.Event()
            # in place of the stock attribute, which ``run`` reads when the thread starts
            self._source = _until(self._stopping, source)

        def start(self) -> None:
            """Start the thread; the end of the process will stop it."""
            running.add(self)
            super().start()

        def stop(self, seconds: float = JOIN_SECONDS) -> None:
            """End the thread after its present batch; wait for it at most so long."""
            self._stopping.set()
            waited = 0.0
            while self.is_alive() and waited < seconds:
                _empty(self._queue)  # the thread may be blocked by a full queue
                # short: the thread may put a batch more before it sees the event
                self.join(0.02)
                waited += 0.02

    def stop_all() -> None:
        """Stop every thread that reads ahead."""
        # a copy: threads that end leave the set meanwhile
        for consumer in list(running):
            consumer.stop()

    module.BackgroundConsumer = BackgroundConsumer
    atexit.register(stop_all)


def _until(stopping: threading.Event, source: Iterable[Item]) -> Iterator[Item]:
    """Yield the items of `source` until `stopping` is set."""
    for item in source:
        if stopping.is_set():
            return
        yield item


def _empty(items: queue.Queue[Any]) -> None:
    """Take everything out of a queue without waiting."""
    while True:
        try:
            items.get_nowait()
        except queue.Empty:
            return
