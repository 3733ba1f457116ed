"""Values that hold while a function runs, for functions that fairseq calls without passing them on.

Nothing here imports fairseq or torch.
"""

from __future__ import annotations

import contextlib
from contextvars import ContextVar
from typing import Iterator, TypeVar

Value = TypeVar("Value")


@contextlib.contextmanager
def holding(variable: ContextVar[Value], value: Value) -> Iterator[None]:
    """Give a variable this value within a block, in this thread alone."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)
