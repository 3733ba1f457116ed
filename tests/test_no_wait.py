"""A training step never waits for the device.

On a GPU the host runs ahead of the device until it asks for a value. The operations that ask are
counted here on the CPU, where they are dispatched all the same. What fairseq's own layers ask for
is not ours: its LSTM encoder wants to know whether there is padding, and the lengths.
"""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from training_steps import SYSTEMS, Step, asking_line, has_lines, is_of_search, with_lines

# operations whose result, or the size of it, is a value on the host
ASKING = {
    *("_local_scalar_dense", "nonzero", "masked_select", "equal", "is_nonzero", "bincount"),
    *("unique_dim", "_unique", "_unique2", "unique_consecutive", "unique_dim_consecutive"),
}
OWN = {"note", "spy", "__torch_dispatch__"}  # functions of this file
INDEXING = {"index", "index_put", "index_put_", "_index_put_impl_"}


def as_declared(function, args):
    """Arguments with tensors for the numbers that torch 1.13 hands on where it takes tensors."""
    declared = [str(argument.type) for argument in function._schema.arguments]
    return [
        torch.tensor(value) if kind == "Tensor" and isinstance(value, int) else value
        for kind, value in zip(declared, args)
    ]


class Watch(TorchDispatchMode):
    """Notes where code outside of fairseq's package asks: [(operation, file, line)]."""

    def __init__(self):
        super().__init__()
        self.found = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        name = function.overloadpacket.__name__
        indices = args[1] if name in INDEXING else ()
        by_mask = any(
            index is not None and index.dtype in (torch.bool, torch.uint8) for index in indices
        )
        counted = name == "repeat_interleave" and not (kwargs or {}).get("output_size")
        if name in ASKING or by_mask or counted:
            self.note(name)
        return function(*as_declared(function, args), **(kwargs or {}))

    def note(self, name):
        asking = asking_line(OWN)
        if asking is not None:
            self.found.append((name, *asking))


@pytest.fixture
def watched(monkeypatch):
    """A function -> what it asked the device for."""

    def run(step):
        watch = Watch()
        for name in ("tolist", "numpy", "cpu"):  # these are not dispatched
            real = getattr(torch.Tensor, name)

            def spy(tensor, *words, real=real, name=name, **more):
                watch.note(name)
                return real(tensor, *words, **more)

            monkeypatch.setattr(torch.Tensor, name, spy)
        with watch:
            step()
        return watch.found

    return run


@pytest.fixture(scope="module")
def data(toy_corpus, tmp_path_factory):
    return with_lines(toy_corpus, tmp_path_factory.mktemp("lines") / "data")


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_step_asks_for_nothing(data, watched, name):
    """But for one question of a search: whether all translations have ended."""
    step = Step([data, *SYSTEMS[name]], has_lines(name))
    step()  # what is computed once, such as the rounded rate of dropout, is no part of a step
    calls = watched(step)
    assert any(parameter.grad is not None for parameter in step.model.parameters())
    unasked = [asked for asked in calls if not is_of_search(asked[1])]
    assert not unasked and has_lines(name) == bool(calls)


def test_what_asks_is_seen(watched):
    numbers = torch.arange(4.0)
    for step in (
        lambda: numbers.sum().item(),
        lambda: bool(numbers.sum() > 0),
        lambda: numbers[numbers > 1],
        # not a number: torch 2.14 fills by a mask, without asking where it is
        lambda: numbers.__setitem__(numbers > 1, torch.ones(2) + 1),
        lambda: numbers.tolist(),
        lambda: numbers.cpu(),
        lambda: numbers.nonzero(),
        lambda: torch.equal(numbers, numbers),
        lambda: numbers.repeat_interleave(torch.tensor([1, 2, 0, 1])),
    ):
        assert watched(step)
    assert not watched(lambda: numbers.masked_fill(numbers > 1, 0).sum())
