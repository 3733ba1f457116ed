"""Functions that do more before or after what they do, or do it within a context."""

import contextlib
import inspect

import pytest
import torch

from fairseq_ext.compat.surrounded_calls import call_after, call_before, call_within, compiled_as


class Adder:
    """Adds numbers to a list."""

    def __init__(self, numbers):
        self.numbers = list(numbers)

    def add(self, number, times=1):
        """Add a number."""
        self.numbers += [number] * times
        return len(self.numbers)


@pytest.fixture
def adder():
    """A class of its own, which a test may change."""
    return type("Adder", (Adder,), dict(vars(Adder)))


def test_what_comes_before_may_refuse(adder):
    def check(self, number, times=1):
        if number < 0:
            raise ValueError(f"{number} after {self.numbers}; allowed: at least 0")

    call_before(adder, "add", check)
    numbers = adder([1])
    assert numbers.add(2, times=2) == 3
    with pytest.raises(ValueError, match=r"-1 after \[1, 2, 2\]; allowed: at least 0"):
        numbers.add(-1)
    assert numbers.numbers == [1, 2, 2]


def test_what_comes_before_may_change_its_arguments(adder):
    call_before(adder, "__init__", lambda self, numbers: numbers.append(3))
    assert adder([1, 2]).numbers == [1, 2, 3]


def test_what_comes_after_sees_what_was_done(adder):
    seen = []
    call_after(adder, "add", lambda self, number, times=1: seen.append((self.numbers[-1], times)))
    assert adder([]).add(5, 2) == 2
    assert seen == [(5, 2)]


def test_nothing_follows_an_error(adder):
    call_after(adder, "add", lambda self, *more: pytest.fail("called"))
    with pytest.raises(TypeError):
        adder([]).add(1, "twice")


def test_a_context_ends_after_an_error_too(adder):
    seen = []

    @contextlib.contextmanager
    def noting(self, number, times=1):
        seen.append(f"before {number}")
        try:
            yield
        finally:
            seen.append(f"after {self.numbers}")

    call_within(adder, "add", noting)
    assert adder([]).add(5, times=2) == 2
    with pytest.raises(TypeError):
        adder([1]).add(6, "twice")
    assert seen == ["before 5", "after [5, 5]", "before 6", "after [1]"]


def test_what_is_given_later_comes_first_and_ends_last(adder):
    seen = []

    @contextlib.contextmanager
    def noting(*args):
        seen.append("begin")
        yield
        seen.append("end")

    call_before(adder, "add", lambda *args: seen.append("before"))
    call_within(adder, "add", noting)
    call_before(adder, "add", lambda *args: seen.append("before all"))
    call_after(adder, "add", lambda *args: seen.append("after all"))
    adder([]).add(1)
    assert seen == ["before all", "begin", "before", "end", "after all"]


def test_a_function_is_known_by_its_own_name_and_arguments(adder):
    call_within(adder, "add", lambda *more, **named: contextlib.nullcontext())
    for surround in (call_before, call_after):
        surround(adder, "add", lambda *more, **named: None)
        assert adder.add.__name__ == "add" and adder.add.__doc__ == "Add a number."
        assert list(inspect.signature(adder.add).parameters) == ["self", "number", "times"]


def test_a_replacement_is_compiled_as_what_it_replaces():
    wrap = str

    def replacement(self, number):
        return wrap(stock(self, number))

    class Module(torch.nn.Module):
        def forward(self, number: torch.Tensor):
            return torch.add(number, 2)

    stock, three = Module.forward, torch.tensor(3)
    Module.forward = compiled_as(stock, replacement)
    assert Module()(torch.tensor(1)) == str(three)
    assert torch.equal(torch.jit.script(Module())(torch.tensor(1)), three)
