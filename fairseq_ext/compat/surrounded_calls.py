"""Functions of fairseq that do something more before or after what they do, or within something.

A function may be given several. What is given later comes first, and ends last.
"""

from __future__ import annotations

import functools
import types
from typing import Any, Callable, ContextManager


def call_before(owner: Any, name: str, check: Callable[..., Any]) -> None:
    """Let a function call `check` first, which may refuse its arguments or change what they hold.

    Args:
        owner: the module that has the function, or the class; no class method, which is bound.
        name: of the function there.
        check: takes what the function is called with; what it returns is not read.
    """
    stock = getattr(owner, name)

    @functools.wraps(stock)
    def checked(*args: Any, **kwargs: Any) -> Any:
        check(*args, **kwargs)
        return stock(*args, **kwargs)

    setattr(owner, name, checked)


def call_after(owner: Any, name: str, follow: Callable[..., Any]) -> None:
    """Let a function call `follow` when it has ended, with the arguments that it was called with.

    Args:
        owner, name: as of `call_before`.
        follow: what it returns is not read.
    """
    stock = getattr(owner, name)

    @functools.wraps(stock)
    def followed(*args: Any, **kwargs: Any) -> Any:
        outcome = stock(*args, **kwargs)
        follow(*args, **kwargs)
        return outcome

    setattr(owner, name, followed)


def call_within(owner: Any, name: str, context: Callable[..., ContextManager[Any]]) -> None:
    """Let a function do what it does within a context.

    Args:
        owner, name: as of `call_before`.
        context: takes what the function is called with, and returns the context.
    """
    stock = getattr(owner, name)

    @functools.wraps(stock)
    def enclosed(*args: Any, **kwargs: Any) -> Any:
        with context(*args, **kwargs):
            return stock(*args, **kwargs)

    setattr(owner, name, enclosed)


def compiled_as(stock: Any, replacement: Callable[..., Any]) -> Any:
    """Return a replacement that TorchScript compiles as it does what is replaced.

    It reads the source of what is wrapped, and the names in it from the globals of the wrapper. The
    replacement may use its arguments and what its closure has, no globals of its own.
    """
    code, defaults = replacement.__code__, replacement.__defaults__
    placed = types.FunctionType(
        code, stock.__globals__, stock.__name__, defaults, replacement.__closure__
    )
    return functools.wraps(stock)(placed)
