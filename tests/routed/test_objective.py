"""An update has one mean for each task, however it is cut into minibatches."""

from functools import partial

import pytest
import torch
from common.gloo_processes import in_processes
from streams.support import Optimizer, first_update

from fairseq_ext.routed.objective import SHARE, minibatch_size, note_shares

ROUTED = ["--task", "routed_mtl", "--arch", "routed_gru_tiny", "--lang-pairs", "xx-yy,xx-zz"]
ROUTED += ["--main-pair", "xx-yy", "--embed-dim", 12, "--hidden-size", 10, "--attention-size", 12]
ROUTED += ["--dropout", 0]
CPU = torch.device("cpu")
# an update of two batches: 10 and 30 tokens of a pair, 4 and 6 of another
BATCHES = [
    {"a-b": {"ntokens": 10, "nsentences": 3}, "a-c": {"ntokens": 4, "nsentences": 1}},
    {"a-b": {"ntokens": 30, "nsentences": 5}, "a-c": {"ntokens": 6, "nsentences": 1}},
]
SHARES = [{"a-b": 0.5, "a-c": 0.8}, {"a-b": 1.5, "a-c": 1.2}]


def shares(samples, by_sentences=False):
    """[{name: share}] of copies of the batches."""
    copies = [{name: dict(part) for name, part in sample.items()} for sample in samples]
    size_of = partial(minibatch_size, None, by_sentences)
    note_shares(copies, ["a-b", "a-c"], size_of, CPU)
    return [{name: float(part[SHARE]) for name, part in sample.items()} for sample in copies]


def test_shares_are_sizes_by_their_mean():
    assert shares(BATCHES) == [pytest.approx(expected) for expected in SHARES]
    assert shares(BATCHES, by_sentences=True)[0] == {"a-b": 0.75, "a-c": 1.0}
    # exactly: an update of one batch is what it is without shares; a batch may be missing
    assert shares([BATCHES[1], {}]) == [{"a-b": 1.0, "a-c": 1.0}, {}]


def shares_of_worker(rank, folder):
    """Those of the worker's only batch."""
    return shares([BATCHES[rank]])


def test_shares_are_of_all_workers(tmp_path):
    of_workers = in_processes(2, shares_of_worker, tmp_path)
    assert [worker[0] for worker in of_workers] == [pytest.approx(expected) for expected in SHARES]


def gradients(task, model, criterion, samples):
    """{name: gradient} of an update, divided as the trainer does; minibatches as they are cut."""
    model.zero_grad(set_to_none=True)
    task.begin_update(samples, CPU)
    outputs = [task.train_step(sample, model, criterion, Optimizer, 0) for sample in samples]
    sizes = sum(size for _, size, _ in outputs)
    return {name: p.grad / sizes for name, p in model.named_parameters() if p.grad is not None}


SMOOTHED = ["--criterion", "label_smoothed_cross_entropy", "--ignore-prefix-size", 3]
CHUNKED = ["--criterion", "chunked_label_smoothed_cross_entropy", "--ignore-prefix-size", 3]
COUNTED = {
    "tokens": [],
    "sentences": ["--sentence-avg"],
    "scored": SMOOTHED,
    "scored-in-chunks": CHUNKED,
    "scored-by-sentences": [*SMOOTHED, "--sentence-avg"],
}


@pytest.mark.parametrize("more", COUNTED.values(), ids=COUNTED)
def test_parts_of_an_update_are_the_update(more, toy_corpus):
    """--update-freq 2, with batches of the two shortest sentences and of six others."""
    task, model, criterion, _ = first_update([toy_corpus.three, *ROUTED, *more], 8)
    data = task.dataset("train").datasets

    def minibatches(cut):
        batch = {}
        for pair, part in data.items():
            by_length = sorted(range(len(part)), key=lambda number: part.tgt_sizes[number])
            batch[pair] = part.collater([part[number] for number in by_length[::30][cut]])
            batch[pair]["net_input"]["pair"] = pair
        return batch

    whole = gradients(task, model, criterion, [minibatches(slice(None))])
    parts = gradients(task, model, criterion, [minibatches(slice(2)), minibatches(slice(2, None))])
    assert whole.keys() == parts.keys()
    for name, gradient in whole.items():
        torch.testing.assert_close(parts[name], gradient, rtol=1e-4, atol=1e-6)
