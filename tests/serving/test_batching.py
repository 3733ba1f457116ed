"""The queue: what is computed together, in which order, and what becomes of errors."""

import concurrent.futures
import time

import pytest
from serving.support import PATIENCE, SlowModel

from fairseq_ext.tools.serving.batching import Batcher, QueueFull
from fairseq_ext.tools.serving.limits import Limits


@pytest.fixture
def model():
    return SlowModel()


@pytest.fixture
def batcher(model):
    """Function (limits) -> a batcher whose first batch waits at the model's gate."""
    batchers = []

    def make(**limits):
        batchers.append(Batcher(model.run, Limits(**{"max_sentences": 1, **limits})))
        return batchers[-1]

    yield make
    model.gate.set()
    for entry in batchers:
        entry.close()


def submit(batcher, *items, key="key", length=1):
    return batcher.submit(key, items, [length] * len(items))


def held_up(batcher, model):
    """A job in a batch that waits at the gate, so that what follows is queued."""
    job = submit(batcher, "first")
    assert model.begun.acquire(timeout=PATIENCE)
    return job


def texts(job):
    return [result["text"] for result in job.future.result(PATIENCE)]


def test_waiting_jobs_are_computed_together(batcher, model):
    queue = batcher()
    first = held_up(queue, model)
    jobs = [submit(queue, "a", "b"), submit(queue, "c"), submit(queue, "d", key="other")]
    assert queue.waiting == 4
    model.gate.set()
    assert [texts(job) for job in [first, *jobs]] == [["first"], ["a", "b"], ["c"], ["d"]]
    assert model.batches == [["first"], ["a", "b", "c"], ["d"]]
    assert queue.waiting == 0 and queue.seconds_per_sentence > 0


def test_a_batch_has_at_most_so_many_sentences(batcher, model):
    queue = batcher(batch_sentences=2)
    held_up(queue, model)
    jobs = [submit(queue, "a", "b", "c"), submit(queue, "d")]
    model.gate.set()
    assert [texts(job) for job in jobs] == [["a", "b", "c"], ["d"]]
    assert model.batches[1:] == [["a", "b"], ["c", "d"]]


def test_a_batch_has_at_most_so_many_tokens_with_padding(batcher, model):
    queue = batcher(batch_tokens=10)
    held_up(queue, model)
    lengths = {"huge": 50, "a": 3, "b": 3, "long": 5, "c": 3}
    jobs = [submit(queue, text, length=length) for text, length in lengths.items()]
    model.gate.set()
    assert [texts(job) for job in jobs] == [[text] for text in lengths]
    # a sentence that is too long for any batch is alone; the long one would make it 3 * 5
    assert model.batches[1:] == [["huge"], ["a", "b", "c"], ["long"]]


def test_an_idle_server_waits_for_more(batcher, model):
    model.gate.set()
    queue = batcher(max_wait=200)
    jobs = [submit(queue, "a"), submit(queue, "b")]
    assert [texts(job) for job in jobs] == [["a"], ["b"]]
    assert model.batches == [["a", "b"]]


def test_a_full_batch_does_not_wait(batcher, model):
    model.gate.set()
    queue = batcher(max_wait=1000 * PATIENCE, batch_sentences=2)
    assert texts(submit(queue, "a", "b")) == ["a", "b"]


def test_a_queue_with_all_jobs_that_there_can_be_does_not_wait(model):
    model.gate.set()
    queue = Batcher(model.run, Limits(max_wait=1000 * PATIENCE), lambda: 2)
    jobs = [submit(queue, "a"), submit(queue, "b")]
    assert [texts(job) for job in jobs] == [["a"], ["b"]]
    assert model.batches == [["a", "b"]]
    queue.close()


def test_what_waited_for_a_batch_still_waits_for_others(batcher, model):
    queue = batcher(max_wait=1000 * PATIENCE, batch_sentences=2)
    first = submit(queue, "first", "second")
    assert model.begun.acquire(timeout=PATIENCE)
    waiting = submit(queue, "a")
    waiting.arrived -= 2 * PATIENCE
    model.gate.set()
    assert texts(first) == ["first", "second"]
    assert texts(submit(queue, "b")) == ["b"] and texts(waiting) == ["a"]
    assert model.batches[1:] == [["a", "b"]]


def test_a_full_queue_says_when_to_come_again(batcher, model):
    queue = batcher(max_queue=2)
    queue.seconds_per_sentence = 3.0
    held_up(queue, model)
    submit(queue, "a", "b")
    with pytest.raises(QueueFull, match="2 sentences wait already; allowed: 2") as full:
        submit(queue, "c")
    assert full.value.seconds == 6


def test_a_job_that_is_dropped_before_its_batch_stops_nothing(batcher, model):
    """The client goes while an idle server waits for more: the next one is answered."""
    queue = batcher(max_wait=300)
    model.gate.set()
    job = submit(queue, "dropped")
    time.sleep(0.1)  # so that the thread waits for more of it
    queue.drop(job)
    time.sleep(0.4)  # so that it has nothing to compute at the end of the wait
    assert texts(submit(queue, "next")) == ["next"]
    assert model.batches == [["next"]]


def test_a_dropped_job_is_not_computed(batcher, model):
    queue = batcher()
    held_up(queue, model)
    dropped, other = submit(queue, "a", "b"), submit(queue, "c")
    queue.drop(dropped)
    assert queue.waiting == 1
    model.gate.set()
    assert texts(other) == ["c"] and model.batches[1:] == [["c"]]
    assert not dropped.future.done()


def test_only_the_failing_job_fails(batcher, model, caplog):
    queue = batcher()
    held_up(queue, model)
    jobs = [submit(queue, "a"), submit(queue, "fail", "b"), submit(queue, "refuse")]
    model.gate.set()
    assert texts(jobs[0]) == ["a"]
    with pytest.raises(RuntimeError, match="on purpose"):
        jobs[1].future.result(PATIENCE)
    with pytest.raises(ValueError, match="not this"):
        jobs[2].future.result(PATIENCE)
    assert texts(submit(queue, "again")) == ["again"]
    assert "a batch of 3 requests failed; each is tried alone" in caplog.text


def test_a_job_of_several_batches_fails_once(batcher, model):
    queue = batcher(batch_sentences=1)
    held_up(queue, model)
    job = submit(queue, "a", "fail", "b")
    model.gate.set()
    with pytest.raises(RuntimeError):
        job.future.result(PATIENCE)
    queue.close()
    assert model.batches == [["first"], ["a"], ["fail"]]


def test_closing_computes_what_waits(batcher, model):
    queue = batcher(batch_sentences=2)
    held_up(queue, model)
    jobs = [submit(queue, str(number)) for number in range(5)]
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        closing = pool.submit(queue.close)
        model.gate.set()
        closing.result(PATIENCE)
    assert all(job.future.done() for job in jobs)


def test_short_sentences_pass_a_long_one_and_stay_in_order(batcher, model):
    queue = batcher(batch_tokens=10)
    held_up(queue, model)
    job = queue.submit("key", ["a", "long", "b", "longer", "c"], [3, 8, 3, 9, 3])
    model.gate.set()
    assert texts(job) == ["a", "long", "b", "longer", "c"]
    assert model.batches[1:] == [["a", "b", "c"], ["long"], ["longer"]]


def test_the_time_of_a_sentence_is_a_running_mean(batcher, model, monkeypatch):
    queue = batcher()
    model.gate.set()
    texts(submit(queue, "first"))
    queue.seconds_per_sentence = 10.0
    texts(submit(queue, "second"))
    texts(submit(queue, "third"))  # the mean of the second is there when this one is computed
    assert 0.5 * 10.0 < queue.seconds_per_sentence < 0.9 * 10.0
