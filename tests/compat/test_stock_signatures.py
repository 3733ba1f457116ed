"""Patched functions take what those of fairseq take, by place and by name."""

import inspect
import subprocess
import sys
from pathlib import Path

import pytest
from compat.stock_signatures import differences

PROGRAM = Path(__file__).with_name("stock_signatures.py")


def test_patched_functions_take_the_arguments_of_stock():
    program = [sys.executable, str(PROGRAM)]
    ended = subprocess.run(program, capture_output=True, text=True, timeout=300)
    *lines, number = ended.stdout.splitlines() or [ended.stderr]
    assert not lines, "\n".join(lines)
    assert int(number.split()[0]) > 300


def stock(tokens, lengths=None, *, reduce=True):
    """A function with an argument of each kind."""


def wider(tokens, lengths=None, *more, reduce=True, **options):
    """Takes more."""


def renamed(words, lengths=None, *, reduce=True):
    """Has another name."""


def narrower(tokens, **options):
    """Takes less by place."""


def fewer(tokens, lengths=None):
    """Takes less by name."""


def stricter(tokens, lengths, *, reduce=False):
    """Has other defaults."""


def demanding(tokens, lengths=None, *, reduce=True, language):
    """Needs more."""


@pytest.mark.parametrize(
    "patched, expected",
    [
        (wider, []),
        (renamed, ["has words in the place of tokens", "takes no tokens by its name"]),
        (narrower, ["takes no lengths by its place"]),
        (fewer, ["takes no reduce by its name"]),
        (stricter, ["has another default of lengths", "has another default of reduce"]),
        (demanding, ["needs language"]),
    ],
)
def test_differences_are_noticed(patched, expected):
    signatures = inspect.signature(stock), inspect.signature(patched)
    assert differences(*signatures) == expected
