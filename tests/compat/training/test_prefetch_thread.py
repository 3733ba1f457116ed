"""No thread is inside torch when a command's process ends."""

import os
import queue
import subprocess
import sys
import threading

import pytest
from fairseq.data import iterators

PROGRAM = """
import torch
from fairseq.data.iterators import BufferedIterator

class Batches:
    def __len__(self):
        return 10**6

    def __iter__(self):
        batch = torch.randn(200, 200)
        while True:
            for _ in range(50):
                batch = (batch @ batch).clamp(-1, 1)
            yield batch

batches = BufferedIterator(1000, Batches())
next(batches)
print("done")
"""


def status(**variables):
    """Exit status of a process that ends while batches are read ahead."""
    finished = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "OMP_NUM_THREADS": "1", **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    assert "done" in finished.stdout, finished.stderr
    return finished.returncode


def test_a_process_that_reads_ahead_ends_well():
    assert status() == 0


@pytest.mark.slow
@pytest.mark.skipif(sys.version_info >= (3, 14), reason="Python 3.14 leaves such threads alone")
def test_stock_fairseq_aborts():
    """The broken twin of the test above: nothing but the patch makes the difference."""
    assert status(FAIRSEQ_EXT_COMPAT_OFF="reading_ahead_ends_with_the_command") == -6


@pytest.mark.parametrize("size", [1, 5])
def test_a_thread_that_waits_for_a_place_ends(size):
    """Also when nobody takes its batches any more; no batch is made after the present one."""
    numbers, full = [], threading.Event()

    def batches():
        for number in range(100):
            numbers.append(number)
            if number == size:
                full.set()
            yield number

    consumer = iterators.BackgroundConsumer(queue.Queue(size), batches(), 100, None)
    consumer.daemon = True
    consumer.start()
    assert full.wait(10)
    consumer.stop(10)
    assert not consumer.is_alive() and len(numbers) <= size + 2


def test_batches_come_as_before():
    source = range(20)
    assert list(iterators.BufferedIterator(3, source)) == list(source)
    taken = iterators.BufferedIterator(3, source).take(7)
    assert [next(taken) for _ in range(7)] == list(range(7))


def test_an_error_while_reading_reaches_the_training():
    def batches():
        yield 1
        raise ValueError("broken batch")

    class Source:
        __len__ = lambda self: 3  # noqa: E731
        __iter__ = lambda self: batches()  # noqa: E731

    buffered = iterators.BufferedIterator(2, Source())
    assert next(buffered) == 1
    with pytest.raises(ValueError, match="broken batch"):
        next(buffered)
