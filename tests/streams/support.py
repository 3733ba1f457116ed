"""Small datasets of several lang pairs, without files, and single updates."""

import torch
from common import inprocess
from common.words import dictionary_with
from fairseq import options, tasks
from fairseq.data import LanguagePairDataset, ListDataset

from fairseq_ext.streams.dataset import StreamsDataset
from fairseq_ext.streams.plan import TrainingPlan

WORDS = 20
# the schedules, with the options that they need
SCHEDULES = {
    "joint": {},
    "cycle": {},
    "main+aux": {"main_pair": "x-y"},
    "temperature": {"temperature": 2.0},
}
# {pair: updates before it takes part}
JOINS = [{"z-y": 13}, {"z-y": 13, "y-x": 30}, {"z-y": 1, "y-x": 400}]


def dictionary():
    """A Dictionary of WORDS words besides the special ones."""
    return dictionary_with(*(f"w{number}" for number in range(WORDS)))


def pair_dataset(size, seed=0):
    """``size`` random sentence pairs, 1 to 6 words each."""
    generator = torch.Generator().manual_seed(seed)
    words = dictionary()

    def side():
        sentences = []
        for _ in range(size):
            length = int(torch.randint(1, 7, (1,), generator=generator))
            body = torch.randint(4, len(words), (length,), generator=generator)
            sentences.append(torch.cat([body, torch.tensor([words.eos()])]))
        lengths = [len(sentence) for sentence in sentences]
        return ListDataset(sentences, lengths), lengths

    (source, source_sizes), (target, target_sizes) = side(), side()
    return LanguagePairDataset(
        source, source_sizes, words, target, target_sizes, words, shuffle=False
    )


def streams(sets=None, **sizes):
    """StreamsDataset of random pairs; underscores stand for dashes: streams(de_en=7).

    sets: {pair: set} of pairs that are to be taken for the same sentences.
    """
    parts = {
        name.replace("_", "-"): pair_dataset(size, seed)
        for seed, (name, size) in enumerate(sizes.items())
    }
    return StreamsDataset(parts, {**dict(zip(parts, parts)), **(sets or {})})


def in_batches(dataset, size):
    """{pair: batches of ``size`` of the pair's own sentence numbers}."""
    return {
        pair: [
            list(range(start, min(start + size, len(part)))) for start in range(0, len(part), size)
        ]
        for pair, part in dataset.datasets.items()
    }


def training_plan(dataset, schedule, *, group=1, seed=1, batch_size=3, **more):
    """A TrainingPlan of the dataset, ``group`` batches of ``batch_size`` to an update."""
    return TrainingPlan(
        dataset,
        in_batches(dataset, batch_size),
        schedule,
        seed,
        lambda epoch: group,
        **SCHEDULES[schedule],
        **more,
    )


def pairs_of(dataset, batch):
    """The pairs whose sentences a batch of indices holds, in order."""
    return tuple(dict.fromkeys(dataset[index][0] for index in batch))


def first_update(arguments, sentences):
    """Task, model, criterion and {pair: sample} of a run's first update, ``sentences`` a pair."""
    words = [*arguments, "--batch-size", sentences]
    cfg = inprocess.configuration(options.get_training_parser(), words)
    task = tasks.setup_task(cfg.task)
    model, criterion = task.build_model(cfg.model), task.build_criterion(cfg.criterion)
    task.load_dataset("train")
    batches = task.get_batch_iterator(task.dataset("train"), max_sentences=sentences, seed=1)
    return task, model, criterion, next(batches.next_epoch_itr())


class Optimizer:
    """What train_step needs of one."""

    @staticmethod
    def backward(loss):
        loss.backward()


def check_objective(task, model, criterion, sample, objective):
    """train_step's loss and gradients are those of ``objective``; returns its sizes and its log.

    objective: what the update should minimise, from the same weights.
    """
    objective.backward()
    expected = {name: parameter.grad.clone() for name, parameter in model.named_parameters()}
    model.zero_grad(set_to_none=True)
    loss, size, log = task.train_step(sample, model, criterion, Optimizer, 0)
    torch.testing.assert_close(loss, objective.detach(), rtol=1e-6, atol=1e-6)
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(parameter.grad, expected[name], rtol=1e-4, atol=1e-5)
    return size, log
