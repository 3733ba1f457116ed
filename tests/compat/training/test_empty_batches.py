"""Batches that are no multiple of the number of workers."""

import pytest
import torch
from common import inprocess
from fairseq import options, tasks
from fairseq.data import FairseqDataset
from fairseq.data.iterators import EpochBatchIterator
from fairseq.trainer import Trainer


@pytest.fixture
def trainer(tiny_training, tmp_path):
    """A trainer without dropout, before its first update, and an epoch's batches as a list."""
    words = [*tiny_training, "--cpu", "--num-workers", 0, "--dropout", 0, "--save-dir", tmp_path]
    cfg = inprocess.configuration(options.get_training_parser(), words)
    torch.manual_seed(1)
    task = tasks.setup_task(cfg.task)
    trainer = Trainer(cfg, task, task.build_model(cfg.model), task.build_criterion(cfg.criterion))
    iterator = trainer.get_train_iterator(1)
    batches = list(iterator.next_epoch_itr(shuffle=False))
    trainer.begin_epoch(1)
    return trainer, batches


def update(trainer, *batches):
    """What an update logs, of its gradients and words; with a learning rate of 0."""
    trainer.optimizer.set_lr(0.0)
    before = [parameter.detach().clone() for parameter in trainer.model.parameters()]
    logged = trainer.train_step(list(batches))
    gradients = [parameter.grad.clone() for parameter in trainer.model.parameters()]
    with torch.no_grad():
        for parameter, value in zip(trainer.model.parameters(), before):
            parameter.copy_(value)
    return gradients, logged


@pytest.mark.parametrize("missing", [[], None, {}], ids=["list", "none", "dict"])
def test_the_others_count(missing, trainer):
    """fairseq fills the last group of a worker with empty batches."""
    trainer, (first, second, *_) = trainer
    expected, logged = update(trainer, first, second)
    for batches in ((first, second, missing), (first, missing, second), (missing, first, second)):
        gradients, also_logged = update(trainer, *batches)
        torch.testing.assert_close(gradients, expected)
        assert also_logged["sample_size"] == logged["sample_size"] > 0
        assert also_logged["loss"] == pytest.approx(logged["loss"])


def test_worker_without_batches_has_no_gradient(trainer):
    trainer, _ = trainer
    gradients, logged = update(trainer, [], [])
    assert all((gradient == 0).all() for gradient in gradients)
    assert logged["sample_size"] == 0


class Numbers(FairseqDataset):
    """Its items are their numbers."""

    def __getitem__(self, index):
        return index


def epoch_of(workers, number, shuffle=True, grouped=True):
    """The batches of each worker, in an epoch of `number` batches of one item."""
    batches = [[index] for index in range(number)]
    return [
        EpochBatchIterator(
            Numbers(), list, batches, num_shards=workers, shard_id=rank, grouped_shuffling=grouped
        ).ordered_batches(1, False, shuffle)
        for rank in range(workers)
    ]


@pytest.mark.parametrize("workers, number", [(1, 5), (2, 6), (2, 7), (3, 7), (4, 7), (4, 3)])
def test_grouped_shuffling_leaves_out_nothing(workers, number):
    by_worker = epoch_of(workers, number)
    assert len({len(batches) for batches in by_worker}) == 1
    groups = list(zip(*by_worker))
    assert sorted(index for group in groups for batch in group for index in batch) == list(
        range(number)
    )
    for group in groups:  # neighbours, whose sentences are of similar length
        indices = [batch[0] for batch in group if batch]
        assert indices[0] % workers == 0 and indices == list(range(indices[0], indices[-1] + 1))


@pytest.mark.parametrize("shuffle, grouped", [(False, True), (True, False), (False, False)])
def test_other_orders_are_complete_as_they_are(shuffle, grouped):
    by_worker = epoch_of(3, 7, shuffle, grouped)
    assert [len(batches) for batches in by_worker] == [3, 3, 3]
    assert sorted(i for batches in by_worker for batch in batches for i in batch) == list(range(7))
