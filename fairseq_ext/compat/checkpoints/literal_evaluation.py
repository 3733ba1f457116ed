"""Values of settings that fairseq evaluates as Python: literals, and `+` and `*` of them.

`evaluate` takes the place of `eval` in the modules of fairseq that evaluate a setting or a line of
a file. It knows numbers, strings, True, False and None, lists, tuples and dicts of values, a minus
before a number, and `+` and `*` of numbers, lists and tuples. There are no names, calls or
attributes, so nothing is executed.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import tokenize
import traceback
from typing import Any

from ..user_errors import OptionError

ALLOWED = (
    "numbers, strings, True, False, None, lists, tuples and dicts of these, and + and * of numbers "
    "and lists, as in [(512, 3)] * 4 + [(768, 2)]"
)
MAX_CHARACTERS = 1 << 20  # of a text; a line of a manifest holds the units of a long recording
MAX_OPERATORS = 400  # brackets, + - and *: the depth of an expression is less than their number
MAX_ITEMS = 10_000  # of what + and * put together, those of inner lists included
MAX_NUMBER = 1 << 63  # of what + and * make of whole numbers
MAX_DIGITS = 100  # of one number: reading a number takes the square of its length

CONSTANTS = (str, int, float, bool, type(None))
# `eval(args.NAME)`, `eval(kwargs["KEY"])` and `eval(getattr(args, "KEY", "{}"))`; one letter is the
# argument of a helper such as `eval_str_list(x)`
EVALUATED = re.compile(
    r"""(?<![\w.])eval\((?:(?:\w+\.)*(?P<name>\w{2,})\)|[^)]*?["'](?P<key>\w+)["'])"""
)


class RefusedSetting(OptionError, argparse.ArgumentTypeError):
    """A setting or a line that is not evaluated; the message says what is allowed.

    It is an ArgumentTypeError too: argparse then puts the option before the message.
    """


class _Unknown(Exception):
    """What an expression contains that is not allowed, in words."""


def evaluate(text: Any, *_scopes: Any) -> Any:
    """Return the value of `text`, as `eval` does for what is allowed.

    Args:
        text: the expression. Anything but a string raises TypeError, as with `eval`; fairseq's
            `eval_bool` depends on it.
        _scopes: the variables that a caller of `eval` may name; nothing here has access to them.

    Raises RefusedSetting, with the name of the setting where the caller's source shows it.
    """
    if not isinstance(text, str):
        raise TypeError(f"a string is evaluated, not an object of type {type(text).__name__}")
    try:
        return literal_value(text)
    except ValueError as error:
        caller = traceback.extract_stack(limit=2)[0]
        name = _setting_name(caller.line or "")
        shown = text if len(text) <= 80 else f"{text[:77]}..."
        label = f"{name} {shown!r}" if name else repr(shown)
        raise RefusedSetting(f"{label} is not allowed: {error}; allowed: {ALLOWED}") from None


def literal_value(text: str) -> Any:
    """Return the value of an expression; ValueError, with what is wrong, for any other text."""
    try:
        _check_tokens(text)
        # blanks in front are an indentation to the parser; `eval` takes them too
        return _value(ast.parse(text.strip(), mode="eval").body)
    except _Unknown as error:
        raise ValueError(str(error)) from None
    except (SyntaxError, tokenize.TokenError, RecursionError, MemoryError, TypeError) as error:
        # TypeError: [] + 1, or a list as the key of a dict
        raise ValueError(f"no expression ({str(error) or type(error).__name__})") from None


def _check_tokens(text: str) -> None:
    """Raise _Unknown for a token that is not allowed, or for too many of them.

    The parser recurses over brackets and operators and may exhaust the stack of the process: they
    are counted before it runs.
    """
    if len(text) > MAX_CHARACTERS:
        raise _Unknown(f"{len(text):,} characters, more than {MAX_CHARACTERS:,}")
    operators = 0
    for token in tokenize.generate_tokens(io.StringIO(text.strip()).readline):
        kind, word = token.type, token.string
        if kind == tokenize.OP:
            if word not in "()[]{},:+-*":
                raise _Unknown(f"the operator {word}")
            operators += word not in ",:)]}"
            if operators > MAX_OPERATORS:
                raise _Unknown(f"more than {MAX_OPERATORS} brackets and operators")
        elif kind == tokenize.NUMBER:
            if len(word) > MAX_DIGITS:
                raise _Unknown(f"a number of {len(word):,} characters")
        elif kind == tokenize.NAME:
            if word not in ("True", "False", "None"):
                raise _Unknown(f"the name {word[:40]}")
        elif kind == tokenize.STRING:
            if word[: word.index(word[-1])].lower() not in ("", "r", "u"):
                raise _Unknown("a string with a prefix")
        elif kind not in (tokenize.NEWLINE, tokenize.NL, tokenize.ENDMARKER):
            raise _Unknown(f"a {tokenize.tok_name[kind].lower()}")


def _value(node: ast.expr) -> Any:
    """Return the value of a part of an expression."""
    if isinstance(node, ast.Constant) and type(node.value) in CONSTANTS:
        return node.value
    if isinstance(node, ast.Tuple):
        return tuple(_value(element) for element in node.elts)
    if isinstance(node, ast.List):
        return [_value(element) for element in node.elts]
    if isinstance(node, ast.Dict):
        # a key is None in {**other}
        keys = [_value(key) for key in node.keys if key is not None]
        if len(keys) < len(node.keys):
            raise _Unknown("the operator **")
        return dict(zip(keys, map(_value, node.values)))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
        number = _value(node.operand)
        if isinstance(number, (int, float)):
            return -number if isinstance(node.op, ast.USub) else +number
    if isinstance(node, ast.BinOp):
        return _combined(node)
    raise _Unknown(f"an expression of the kind {type(node).__name__}")


def _combined(node: ast.BinOp) -> Any:
    """Return the sum or the product of two values, if it is small."""
    left, right = _value(node.left), _value(node.right)
    is_sum, is_product = isinstance(node.op, ast.Add), isinstance(node.op, ast.Mult)
    if not (is_sum or is_product):
        raise _Unknown(f"an expression of the kind {type(node.op).__name__}")
    if isinstance(left, (int, float)) and isinstance(right, (int, float)):
        result = left + right if is_sum else left * right
        if isinstance(result, int) and abs(result) > MAX_NUMBER:
            raise _Unknown(f"a number beyond {MAX_NUMBER:,}")
        return result
    if is_sum and type(left) is type(right) and isinstance(left, (list, tuple)):
        if _size(left) + _size(right) > MAX_ITEMS:
            raise _Unknown(f"more than {MAX_ITEMS:,} items")
        return left + right
    if is_product and isinstance(left, int) and isinstance(right, (list, tuple)):
        left, right = right, left
    if is_product and isinstance(left, (list, tuple)) and isinstance(right, int):
        if _size(left) * max(right, 0) > MAX_ITEMS:
            raise _Unknown(f"more than {MAX_ITEMS:,} items")
        return left * right
    names = f"{type(left).__name__} and {type(right).__name__}"
    raise _Unknown(f"{'+' if is_sum else '*'} of {names}")


def _size(value: Any) -> int:
    """Return the number of values inside a value, itself included."""
    if isinstance(value, dict):
        return 1 + sum(_size(item) for pair in value.items() for item in pair)
    return 1 + sum(map(_size, value)) if isinstance(value, (list, tuple)) else 1


def _setting_name(line: str) -> str | None:
    """Return the name of the setting that a line of source evaluates; None if it shows none.

    It is the last name of the argument: encoder_layers for `eval(args.encoder_layers)`.
    """
    match = EVALUATED.search(line)
    return match and (match["name"] or match["key"])
