"""The training loop asks the objects of a run what they offer, and others nothing."""

from types import SimpleNamespace

import pytest

from fairseq_ext.compat import training_hooks


class Loop(SimpleNamespace):
    """In the place of fairseq_cli.train: an epoch that is noted, and its result."""

    def __init__(self, should_stop=False):
        super().__init__(trained=[])

        def train(cfg, trainer, task, epoch_itr):
            self.trained.append(epoch_itr.next_epoch_idx)
            epoch_itr.next_epoch_idx += 1
            return [0.5], should_stop

        self.train = train
        training_hooks.iterators_may_end_the_run(self)


class Iterator:
    """An iterator with batches in the epochs before ``end``."""

    def __init__(self, epoch, end):
        self.next_epoch_idx, self.end = epoch, end

    def is_run_over(self, epoch):
        return epoch >= self.end


def test_the_run_ends_with_the_last_epoch_that_has_batches():
    loop, iterator = Loop(), Iterator(1, end=3)
    assert loop.train(None, None, None, iterator) == ([0.5], False)
    assert loop.train(None, None, None, iterator) == ([0.5], True)
    assert loop.trained == [1, 2]


def test_a_finished_run_that_is_resumed_trains_nothing():
    loop = Loop()
    assert loop.train(None, None, None, Iterator(3, end=3)) == ([None], True)
    assert not loop.trained


@pytest.mark.parametrize("should_stop", [False, True])
def test_other_iterators_are_not_asked(should_stop):
    loop = Loop(should_stop)
    assert loop.train(None, None, None, SimpleNamespace(next_epoch_idx=9)) == ([0.5], should_stop)
    assert loop.trained == [9]


def test_what_the_loop_has_decided_stays():
    assert Loop(should_stop=True).train(None, None, None, Iterator(1, end=9)) == ([0.5], True)
