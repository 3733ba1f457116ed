"""--use-bmuf: the workers that it averages, and what a checkpoint has of it."""

import pytest
import torch
from fairseq.optim.bmuf import FairseqBMUF
from fairseq.trainer import Trainer
from options.systems import SYSTEMS, built

# in one process, which exchanges nothing
TWO_WORKERS = property(lambda optimizer: 2, lambda optimizer, workers: None)


def block_updates_trainer(toy_corpus, *options):
    """A trainer of a transformer with --use-bmuf."""
    words = ("--use-bmuf", "--cpu", *options)
    cfg, task, model = built(SYSTEMS["transformer"], toy_corpus.two, *words)
    return Trainer(cfg, task, model, task.build_criterion(cfg.criterion))


def test_block_updates_of_one_worker_are_named(toy_corpus, caplog):
    assert block_updates_trainer(toy_corpus).optimizer.world_size == 1
    assert [text for text in caplog.messages if text.startswith("--use-bmuf does nothing with one")]


def test_block_updates_are_counted_on(toy_corpus, tmp_path):
    """Stock would count from 0, and broadcast the first worker's model at --warmup-iterations."""
    trainer, path = block_updates_trainer(toy_corpus), str(tmp_path / "checkpoint.pt")
    trainer.optimizer.set_num_updates(700)
    trainer.set_num_updates(700)
    trainer.consolidate_optimizer()
    trainer.save_checkpoint(path, {"train_iterator": {"epoch": 3}})
    resumed = block_updates_trainer(toy_corpus)
    resumed.load_checkpoint(path)
    assert resumed.get_num_updates() == resumed.optimizer.get_num_updates() == 700


def test_block_updates_count_the_workers(toy_corpus, caplog, monkeypatch):
    """torchrun names two workers after fairseq has read --distributed-world-size."""
    trainer = block_updates_trainer(toy_corpus)
    monkeypatch.setattr(type(trainer), "data_parallel_world_size", 2)
    assert trainer.cfg.bmuf.distributed_world_size == 1
    assert trainer.optimizer.world_size == 2
    assert not [text for text in caplog.messages if "--use-bmuf" in text]


def one_block(trainer, seed):
    """End a block of updates as fairseq does: parameters that have changed, and their average."""
    torch.manual_seed(seed)
    with torch.no_grad():
        for parameter in trainer.optimizer.params:
            parameter += torch.randn_like(parameter)
    trainer.optimizer._calc_grad()
    trainer.optimizer._update_global_model()
    if hasattr(trainer.optimizer._optimizer, "fp32_params"):
        trainer.optimizer._optimizer._sync_fp32_params_to_fp16()
    return [parameter.detach().clone() for parameter in trainer.optimizer.params]


@pytest.mark.parametrize("options", [[], ["--bf16"]])
def test_momentum_is_resumed(options, toy_corpus, tmp_path, monkeypatch, caplog):
    """In the middle of a block, too, whose beginning is not in the model."""
    monkeypatch.setattr(FairseqBMUF, "world_size", TWO_WORKERS, raising=False)
    trainer, path = block_updates_trainer(toy_corpus, *options), str(tmp_path / "checkpoint.pt")
    one_block(trainer, 1)
    trainer.optimizer.global_params[0] += 1  # the model has gone on since
    trainer.consolidate_optimizer()
    trainer.save_checkpoint(path, {"train_iterator": {"epoch": 3}})
    resumed = block_updates_trainer(toy_corpus, *options)
    resumed.load_checkpoint(path)
    assert not [text for text in caplog.messages if "block momentum" in text]
    expected = one_block(trainer, 2)
    for value, again in zip(expected, one_block(resumed, 2)):
        torch.testing.assert_close(again, value, rtol=0, atol=0)
    assert len(expected) == len(trainer.optimizer.smoothed_grads) > 0


def test_checkpoints_without_momentum_are_named(toy_corpus, tmp_path, monkeypatch, caplog):
    trainer, path = block_updates_trainer(toy_corpus), str(tmp_path / "checkpoint.pt")
    trainer.consolidate_optimizer()
    trainer.save_checkpoint(path, {"train_iterator": {"epoch": 3}})  # of one worker
    monkeypatch.setattr(FairseqBMUF, "world_size", TWO_WORKERS, raising=False)
    block_updates_trainer(toy_corpus).load_checkpoint(path)
    assert [text for text in caplog.messages if "no block momentum, which begins at zero" in text]


@pytest.mark.parametrize("update, is_average", [(6, True), (7, False)])
def test_averages_reach_the_model(update, is_average, toy_corpus, monkeypatch):
    """The parameters in 16 bits, with which the next update, and a validation, are computed."""
    trainer = block_updates_trainer(toy_corpus, "--bf16", "--global-sync-iter", 3)
    optimizer = trainer.optimizer
    optimizer.warmup_iteration = 0
    optimizer.set_num_updates(update - 1)

    def average():
        for parameter in optimizer.params:
            parameter.data.fill_(3)

    monkeypatch.setattr(optimizer, "_block_sync", average)
    trainer.zero_grad()
    optimizer.backward(sum(parameter.sum() for parameter in trainer.model.parameters()))
    optimizer.step()
    is_three = [bool((p == 3).all()) for p in trainer.model.parameters()]
    assert all(is_three) == is_average and any(is_three) == is_average


def test_models_in_16_bits_are_trained(toy_corpus):
    trainer = block_updates_trainer(toy_corpus, "--bf16")
    before = [parameter.detach().clone() for parameter in trainer.model.parameters()]
    trainer.zero_grad()
    trainer.optimizer.set_lr(0.1)
    trainer.optimizer.backward(sum(parameter.sum() for parameter in trainer.model.parameters()))
    assert trainer.clip_grad_norm(0) > 0
    trainer.optimizer.step()
    pairs = zip(before, trainer.model.parameters())
    assert all(not torch.equal(old, parameter) for old, parameter in pairs)
