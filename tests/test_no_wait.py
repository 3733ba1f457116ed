"""A training step never waits for the device.

On a GPU the host runs ahead of the device until it asks for a value. The operations that ask are
counted here on the CPU, where they are dispatched all the same. What fairseq's own layers ask for
is not ours: its LSTM encoder wants to know whether there is padding, and the lengths.
"""

import os
import shutil
import traceback
from pathlib import Path

import fairseq
import pytest
import torch
from common import inprocess
from fairseq import options, tasks
from torch.utils._python_dispatch import TorchDispatchMode

# operations whose result, or the size of it, is a value on the host
ASKING = {
    *("_local_scalar_dense", "nonzero", "masked_select", "equal", "is_nonzero", "bincount"),
    *("unique_dim", "_unique", "_unique2", "unique_consecutive", "unique_dim_consecutive"),
}
OWN = {"note", "spy", "__torch_dispatch__"}  # functions of this file
STOCK = str(Path(fairseq.__file__).parent) + os.sep
GREEDY = str(Path("fairseq_ext") / "common" / "greedy_search.py")
INDEXING = {"index", "index_put", "index_put_", "_index_put_impl_"}

TRANSFORMER = ("--arch", "dual_transformer_tiny", "--criterion")
LINES = ("--monolingual", "yy", "--synthetic-sources", "sampling", "--synthetic-tag")
TWIN = ("--task", "translation", "-s", "xx", "-t", "yy", "--criterion", "twin")
SYSTEMS = {
    "dual": ("--task", "dual_translation", "-s", "xx", "-t", "yy", *TRANSFORMER)
    + ("chunked_label_smoothed_cross_entropy", "--label-smoothing", 0.1),
    "dual, three languages": ("--task", "dual_translation", "--lang-pairs", "xx-yy,yy-zz")
    + (*TRANSFORMER, "chunked_label_smoothed_cross_entropy"),
    "two stacks": ("--task", "dual_translation", "-s", "xx", "-t", "yy", "--arch")
    + ("dual_supervised_transformer", "--criterion", "dual_supervised", "--dsl-weight", 0),
    "tagged, with lines": ("--task", "dual_translation", "-s", "xx", "-t", "yy", "--arch")
    + ("tagged_transformer", "--criterion", "cross_entropy", *LINES),
    "duo": ("--task", "translation", "-s", "xx", "-t", "yy", "--arch", "duo_transformer_tiny")
    + ("--criterion", "chunked_label_smoothed_cross_entropy"),
    "twin lstm": (*TWIN, "--arch", "twin_lstm", "--twin-weight", 0.5),
    "twin transformer": (*TWIN, "--arch", "twin_transformer", "--twin-weight", 0.5),
    "twin noise": (*TWIN, "--arch", "twin_lstm", "--twin-target", "noise"),
    "twin norm": (*TWIN, "--arch", "twin_lstm", "--twin-stabilise"),
    "multiway": ("--task", "multiway_translation", "--lang-pairs", "xx-yy,yy-zz")
    + ("--arch", "multiway_gru_tiny", "--criterion", "cross_entropy"),
    "dual, with lines": ("--task", "dual_translation", "-s", "xx", "-t", "yy", *TRANSFORMER)
    + ("chunked_label_smoothed_cross_entropy", *LINES),
    "multiway, with lines": ("--task", "multiway_translation", "--lang-pairs", "xx-yy,yy-xx")
    + ("--arch", "multiway_gru_tiny", "--criterion", "cross_entropy", *LINES),
    "routed, with lines": ("--task", "routed_mtl", "--lang-pairs", "xx-yy,yy-xx")
    + ("--main-pair", "xx-yy", "--arch", "routed_gru_tiny", "--criterion", "cross_entropy", *LINES),
    "routed": ("--task", "routed_mtl", "--lang-pairs", "xx-yy,xx-zz", "--main-pair", "xx-yy")
    + ("--arch", "routed_gru_tiny", "--criterion", "cross_entropy"),
}


def as_declared(function, args):
    """Arguments with tensors for the numbers that torch 1.13 hands on where it takes tensors."""
    declared = [str(argument.type) for argument in function._schema.arguments]
    return [
        torch.tensor(value) if kind == "Tensor" and isinstance(value, int) else value
        for kind, value in zip(declared, args)
    ]


class Watch(TorchDispatchMode):
    """Notes where code outside of fairseq's package asks for values: [(operation, line)]."""

    def __init__(self):
        super().__init__()
        self.found = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        name = function.overloadpacket.__name__
        indices = args[1] if name in INDEXING else ()
        by_mask = any(one is not None and one.dtype in (torch.bool, torch.uint8) for one in indices)
        counted = name == "repeat_interleave" and not (kwargs or {}).get("output_size")
        if name in ASKING or by_mask or counted:
            self.note(name)
        return function(*as_declared(function, args), **(kwargs or {}))

    def note(self, name):
        frames = [one for one in traceback.extract_stack() if "/torch/" not in one.filename]
        asking = next(one for one in reversed(frames) if one.name not in OWN)
        if not asking.filename.startswith(STOCK):
            self.found.append((name, f"{asking.filename}:{asking.lineno}"))


@pytest.fixture
def watched(monkeypatch):
    """A function -> what it asked the device for."""

    def run(step):
        watch = Watch()
        for name in ("tolist", "numpy", "cpu"):  # these are not dispatched
            own = getattr(torch.Tensor, name)

            def spy(tensor, *words, own=own, name=name, **more):
                watch.note(name)
                return own(tensor, *words, **more)

            monkeypatch.setattr(torch.Tensor, name, spy)
        with watch:
            step()
        return watch.found

    return run


class Plain:
    """The part of an optimiser that a step needs."""

    def backward(self, loss):
        loss.backward()


@pytest.fixture(scope="module")
def data(toy_corpus, tmp_path_factory):
    """The toy corpus, the yy side of its pairs as monolingual text too."""
    folder = shutil.copytree(toy_corpus.three, tmp_path_factory.mktemp("lines") / "data")
    for end in ("bin", "idx"):
        shutil.copy(folder / f"train.xx-yy.yy.{end}", folder / f"train.yy-None.yy.{end}")
    return folder


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_step_asks_for_nothing(data, watched, name):
    """But for one question of a search: whether all translations have ended."""
    words = [data, *SYSTEMS[name], "--optimizer", "adam", "--batch-size", 8]
    cfg = inprocess.configuration(options.get_training_parser(), words)
    torch.manual_seed(1)
    task = tasks.setup_task(cfg.task)
    model, criterion = task.build_model(cfg.model), task.build_criterion(cfg.criterion)
    task.load_dataset("train")
    batches = task.get_batch_iterator(task.dataset("train"), max_sentences=8)
    samples = batches.next_epoch_itr(shuffle=False)
    has_lines = "--monolingual" in SYSTEMS[name]
    sample = next(one for one in samples if has_lines == any("@" in part for part in one))
    found = watched(lambda: task.train_step(sample, model, criterion, Plain(), 1))
    assert any(parameter.grad is not None for parameter in model.parameters())
    unasked = [one for one in found if f"{GREEDY}:" not in one[1]]
    assert not unasked and has_lines == bool(found)


def test_what_asks_is_seen(watched):
    one = torch.arange(4.0)
    for step in (
        lambda: one.sum().item(),
        lambda: bool(one.sum() > 0),
        lambda: one[one > 1],
        # not a number: torch 2.14 fills by a mask, without asking where it is
        lambda: one.__setitem__(one > 1, torch.ones(2) + 1),
        lambda: one.tolist(),
        lambda: one.cpu(),
        lambda: one.nonzero(),
        lambda: torch.equal(one, one),
        lambda: one.repeat_interleave(torch.tensor([1, 2, 0, 1])),
    ):
        assert watched(step)
    assert not watched(lambda: one.masked_fill(one > 1, 0).sum())
