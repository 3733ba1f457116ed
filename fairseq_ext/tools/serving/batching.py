"""Sentences of several clients, computed together: a queue and one thread.

A job is what a request asks for: sentences, and the key of the computation. Sentences with the same
key may be in a batch, whichever jobs they belong to. The oldest job's are always in the next batch.
"""

import logging
import math
import threading
import time
from collections import deque
from concurrent.futures import Future
from typing import Any, Callable, Deque, Dict, Hashable, List, NamedTuple, Optional, Sequence

from .limits import Limits

logger = logging.getLogger(__name__)
Run = Callable[[Any, List[Any]], List[Any]]
# weight of the last batch in the mean time of a sentence
NEWEST = 0.2


class QueueFull(Exception):
    """There are as many sentences in the queue as it may hold; ``seconds``: until it is empty."""

    def __init__(self, waiting: int, allowed: int, seconds: int):
        super().__init__(f"{waiting} sentences wait already; allowed: {allowed}")
        self.seconds = seconds


class Job:
    """The sentences of a request.

    Args:
        key: of the computation.
        items: what is computed.
        lengths: of the items, in tokens.
    """

    def __init__(self, key: Hashable, items: Sequence[Any], lengths: Sequence[int]):
        self.key, self.items, self.lengths = key, items, lengths
        self.arrived = time.monotonic()
        # places of the items that wait
        self.waiting: Deque[int] = deque(range(len(items)))
        self.results: List[Any] = [None] * len(items)
        self.missing = len(items)
        self.future: "Future[List[Any]]" = Future()
        # from here on nobody else can cancel it
        self.future.set_running_or_notify_cancel()


class Part(NamedTuple):
    """An item of a batch: the job and the place in it."""

    job: Job
    place: int


class Batcher:
    """Computes jobs in one thread.

    Args:
        run: function (key, items) -> as many results.
        limits: of batches and of the queue.
        most_jobs: function -> how many jobs there can be at present: no others are waited for.
    """

    def __init__(self, run: Run, limits: Limits, most_jobs: Callable[[], float] = lambda: math.inf):
        self.run, self.limits, self.most_jobs = run, limits, most_jobs
        self.seconds_per_sentence = 0.0
        self._jobs: List[Job] = []
        self._changed = threading.Condition()
        self._is_closing = False
        self._free_since = -math.inf  # the end of the last batch
        self._thread = threading.Thread(target=self._work, name="batches", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """Return the number of sentences in the queue."""
        return sum(len(job.waiting) for job in list(self._jobs))

    def submit(self, key: Hashable, items: Sequence[Any], lengths: Sequence[int]) -> Job:
        """Return a new job, whose ``future`` will have its results; QueueFull."""
        with self._changed:
            waiting = self.waiting
            if waiting + len(items) > self.limits.max_queue:
                seconds = max(1, math.ceil(waiting * self.seconds_per_sentence))
                raise QueueFull(waiting, self.limits.max_queue, seconds)
            job = Job(key, items, lengths)
            self._jobs.append(job)
            self._changed.notify()
        return job

    def drop(self, job: Job) -> None:
        """Forget the sentences of a job that are not in a batch yet."""
        with self._changed:
            job.waiting.clear()
            if job in self._jobs:
                self._jobs.remove(job)

    def close(self) -> None:
        """Compute what is in the queue, then end the thread."""
        with self._changed:
            self._is_closing = True
            self._changed.notify()
        self._thread.join()

    # ---------------------------------------------------------------- the thread

    def _work(self) -> None:
        """Compute batches until the server closes."""
        while True:
            batch = self._next_batch()
            if batch is None:
                return
            start = time.monotonic()
            self._compute(batch)
            self._free_since = time.monotonic()
            seconds = (self._free_since - start) / len(batch)
            before = self.seconds_per_sentence or seconds
            self.seconds_per_sentence = NEWEST * seconds + (1 - NEWEST) * before

    def _next_batch(self) -> Optional[List[Part]]:
        """Return what is computed next, after a short wait for more; None at the end."""
        with self._changed:
            while True:
                while not self._jobs:
                    if self._is_closing:
                        return None
                    self._changed.wait()
                self._wait_for_more()
                batch = self._take()
                if batch:  # none where all clients have gone while it waited
                    return batch

    def _wait_for_more(self) -> None:
        """Wait for more jobs: for so long after the oldest, and after the batch before."""
        end = max(self._jobs[0].arrived, self._free_since) + self.limits.max_wait / 1000
        while self._jobs and not self._is_closing and not self._is_full():
            rest = end - time.monotonic()
            if rest <= 0:
                break
            self._changed.wait(rest)

    def _is_full(self) -> bool:
        """True if the sentences of the oldest job's key fill a batch, or all jobs are there."""
        if len(self._jobs) >= self.most_jobs():
            return True
        key = self._jobs[0].key
        waiting = sum(len(job.waiting) for job in self._jobs if job.key == key)
        return waiting >= self.limits.batch_sentences

    def _take(self) -> List[Part]:
        """Return the oldest sentence and all that fit beside it; they leave the queue."""
        batch: List[Part] = []
        longest = 0
        for job in list(self._jobs):
            if job.key != self._jobs[0].key:
                continue
            for _ in range(len(job.waiting)):
                place = job.waiting.popleft()
                length = max(longest, job.lengths[place])
                fits = length * (len(batch) + 1) <= self.limits.batch_tokens
                if len(batch) < self.limits.batch_sentences and (fits or not batch):
                    batch.append(Part(job, place))
                    longest = length
                else:
                    job.waiting.append(place)  # round once: the order stays
        self._jobs = [job for job in self._jobs if job.waiting]
        return batch

    def _compute(self, batch: List[Part]) -> None:
        """Compute a batch; if that fails, each job by itself, so that one cannot harm another."""
        by_job: Dict[int, List[Part]] = {}
        for part in batch:
            by_job.setdefault(id(part.job), []).append(part)
        try:
            results = self.run(batch[0].job.key, [job.items[place] for job, place in batch])
        except Exception as error:
            if len(by_job) == 1:
                self._fail(batch[0].job, error)
                return
            logger.exception("a batch of %d requests failed; each is tried alone", len(by_job))
            for parts in by_job.values():
                self._compute(parts)
            return
        for (job, place), result in zip(batch, results):
            job.results[place] = result
            job.missing -= 1
            if not job.missing:
                job.future.set_result(job.results)

    def _fail(self, job: Job, error: Exception) -> None:
        """Give up a job."""
        self.drop(job)
        if not job.future.done():
            job.future.set_exception(error)
