"""Two workers that leave out other layers (--encoder-layerdrop) hold the same parameters.

Dropout and layerdrop draw from one generator on a CPU: with batches of other shapes, the workers
keep other layers. Each worker has fairseq's own trainer.
"""

import pytest
import torch
from common.gloo_processes import in_processes
from common.inprocess import configuration
from fairseq import options, tasks
from fairseq.trainer import Trainer
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from fairseq_ext.streams.distributed import average_gradients

UPDATES = 10
LAYERS = 3
TRAINING = ["--task", "dual_translation", "-s", "xx", "-t", "yy", "--arch", "tagged_transformer"]
TRAINING += ["--share-all-embeddings", "--optimizer", "adam", "--lr", 0.01, "--seed", 5, "--cpu"]
TRAINING += [
    "--one-way",
    "--encoder-layers",
    LAYERS,
    "--decoder-layers",
    1,
    "--encoder-layerdrop",
    0.5,
]
TRAINING += ["--dropout", 0.1, "--batch-size", 4, "--clip-norm", 1, "--num-workers", 0]
TRAINING += ["--criterion", "label_smoothed_cross_entropy", "--distributed-world-size", 2]
for _side in ("encoder", "decoder"):
    TRAINING += [f"--{_side}-embed-dim", 8, f"--{_side}-ffn-embed-dim", 8]
    TRAINING += [f"--{_side}-attention-heads", 1]
# gradients that the workers have; nobody has one of "none"
GRADIENTS = {"both": (2.0, 4.0), "first": (3.0, None), "second": (None, 5.0), "none": (None, None)}


def train(rank, folder, data, backend):
    """Return the parameters after each update, and which encoder layers it kept."""
    words = [data, *TRAINING, "--ddp-backend", backend, "--distributed-rank", rank]
    cfg = configuration(options.get_training_parser(), words)
    task = tasks.setup_task(cfg.task)
    torch.manual_seed(1)
    trainer = Trainer(cfg, task, task.build_model(cfg.model), task.build_criterion(cfg.criterion))
    batches = trainer.get_train_iterator(1).next_epoch_itr()
    kept_layers = []
    layers = trainer.get_model().transformer.encoder.layers  # to iterate over them draws anew
    for number in range(LAYERS):
        layers[number].register_forward_hook(lambda *_, number=number: kept_layers[-1].add(number))
    history = []
    for _ in range(UPDATES):
        kept_layers.append(set())
        trainer.train_step([next(batches)])
        named = trainer.get_model().named_parameters()
        history.append({name: parameter.detach().clone() for name, parameter in named})
    return {"kept": [sorted(numbers) for numbers in kept_layers], "history": history}


@pytest.mark.parametrize("backend", ["legacy_ddp", "pytorch_ddp"])
def test_workers_that_keep_other_layers_stay_equal(backend, toy_corpus, tmp_path):
    workers = in_processes(2, train, tmp_path, toy_corpus.two, backend)
    first, second = (worker["kept"] for worker in workers)
    # with as many layers on both, gradients of different layers would meet
    assert any(a != b and len(a) == len(b) for a, b in zip(first, second))
    assert any(len(set(a) | set(b)) < LAYERS for a, b in zip(first, second))
    histories = [worker["history"] for worker in workers]
    for update in range(1, UPDATES):
        here, there = (history[update] for history in histories)
        before = histories[0][update - 1]
        moved = {name for name, values in here.items() if not torch.equal(values, before[name])}
        assert all(torch.equal(values, there[name]) for name, values in here.items())
        for number in range(LAYERS):
            layer = f"transformer.encoder.layers.{number}."
            # what one worker has kept is trained by both, and no momentum moves the others
            is_kept = number in first[update] + second[update]
            assert (f"{layer}fc1.weight" in moved) == is_kept
            assert is_kept or not any(name.startswith(layer) for name in moved)


def average(rank, folder):
    """Return the gradients after they were put together."""
    model = nn.Module()
    for name in GRADIENTS:
        setattr(model, name, nn.Parameter(torch.zeros(2)))
    model.frozen = nn.Parameter(torch.zeros(2), requires_grad=False)
    wrapped = DistributedDataParallel(model)
    for name, gradients in GRADIENTS.items():
        if gradients[rank] is not None:
            getattr(model, name).grad = torch.full((2,), gradients[rank])
    average_gradients(wrapped)
    named = model.named_parameters()
    return {name: p.grad[0].item() for name, p in named if p.grad is not None}


def test_means_count_zeros_of_workers_without_a_gradient(tmp_path):
    for gradients in in_processes(2, average, tmp_path):
        assert gradients == {"both": 3.0, "first": 1.5, "second": 2.5}
