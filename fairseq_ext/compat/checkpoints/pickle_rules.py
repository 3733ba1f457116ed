"""With which arguments a checkpoint may call the classes and functions of the list.

A class without a rule is called without arguments, as pickle makes an object whose state follows.
The rules are what Python, numpy and torch write: nothing else is needed to read a checkpoint.
"""

from __future__ import annotations

import _codecs
import collections
import importlib
import math
from types import ModuleType
from typing import Any, Callable

# True for the arguments of a call that pickles of checkpoints contain
ArgumentRule = Callable[["tuple[Any, ...]"], bool]

NUMERIC_KINDS = "biufc"  # of numpy: bool, integers, floats, complex numbers
RETURN_TYPES = (int, str, list)  # of the methods of sentencepiece
SCALARS = (str, bytes, int, float, bool, complex, type(None))


def is_number(value: object) -> bool:
    """Return True for an int or a float of Python."""
    return type(value) in (int, float)


def is_ints(value: object) -> bool:
    """Return True for a tuple or list, or a torch.Size, of whole numbers."""
    return isinstance(value, (tuple, list)) and all(type(item) is int for item in value)


def is_key(value: object) -> bool:
    """Return True for a scalar, or a tuple of scalars.

    The hash of a tuple within a tuple within a tuple, and so on, exhausts the stack.
    """
    if type(value) is tuple:
        return all(type(item) in SCALARS for item in value)
    # what a state may have as a key beside scalars: a dtype or device of torch, a class, a function
    return type(value) in SCALARS or not hasattr(value, "__len__")


def is_encoded(arguments: tuple[Any, ...]) -> bool:
    """Return True for the arguments by which protocol 2 writes bytes."""
    return len(arguments) == 2 and type(arguments[0]) is str and arguments[1] in ENCODINGS


ENCODINGS = ("latin1", "latin-1")


def is_buffer(arguments: tuple[Any, ...]) -> bool:
    """Return True for the content of a bytearray; a number would be its size."""
    return not arguments or is_encoded(arguments) or [type(x) for x in arguments] == [bytes]


def is_collection(arguments: tuple[Any, ...]) -> bool:
    """Return True for one list of keys, as of a set."""
    return not arguments or (
        len(arguments) == 1 and type(arguments[0]) is list and all(map(is_key, arguments[0]))
    )


def is_pairs(arguments: tuple[Any, ...]) -> bool:
    """Return True for a list of pairs, as of an OrderedDict."""
    if not arguments:
        return True
    return (
        len(arguments) == 1
        and type(arguments[0]) is list
        and all(
            type(pair) in (list, tuple) and is_key(next(iter(pair), ())) for pair in arguments[0]
        )
    )


def is_counts(arguments: tuple[Any, ...]) -> bool:
    """Return True for a dict, as of a Counter."""
    return not arguments or (len(arguments) == 1 and type(arguments[0]) is dict)


def is_factory(arguments: tuple[Any, ...]) -> bool:
    """Return True for the factory of a defaultdict: a class of empty values."""
    factories = (None, dict, list, set, int, float, str, bool, collections.OrderedDict)
    return len(arguments) <= 1 and all(
        any(x is factory for factory in factories) for x in arguments
    )


def is_two_numbers(arguments: tuple[Any, ...]) -> bool:
    """Return True for the parts of a complex number."""
    return len(arguments) <= 2 and all(map(is_number, arguments))


def is_slice(arguments: tuple[Any, ...]) -> bool:
    """Return True for the three whole numbers of a slice."""
    return len(arguments) == 3 and all(x is None or type(x) is int for x in arguments)


def _python_rules() -> dict[int, ArgumentRule]:
    """Return the rules of Python's containers and numbers, and of the bytes in protocol 2."""
    return {
        id(_codecs.encode): is_encoded,
        id(bytearray): is_buffer,
        id(set): is_collection,
        id(frozenset): is_collection,
        id(collections.OrderedDict): is_pairs,
        id(collections.Counter): is_counts,
        id(collections.defaultdict): is_factory,
        id(complex): is_two_numbers,
        id(slice): is_slice,
    }


def multiarray() -> ModuleType:
    """Return the module of numpy that makes arrays from pickles."""
    try:
        return importlib.import_module("numpy._core.multiarray")  # numpy 2
    except ImportError:
        return importlib.import_module("numpy.core.multiarray")


def _numpy_rules() -> dict[int, ArgumentRule]:
    """Return the rules of numpy's arrays, scalars and types of numbers."""
    import numpy

    def is_type_code(arguments: tuple[Any, ...]) -> bool:
        """True for ("f8", False, True): the code of a number, whether to align, whether to copy."""
        if not (1 <= len(arguments) <= 3 and type(arguments[0]) is str):
            return False
        code = arguments[0].lstrip("<>=|")
        sizes = code[1:].isdigit() and len(code) <= 3
        return code[:1] in NUMERIC_KINDS and sizes and all(x in (0, 1) for x in arguments[1:])

    def is_empty_array(arguments: tuple[Any, ...]) -> bool:
        """True for an array of no items; its state follows."""
        return (
            len(arguments) == 3
            and arguments[0] is numpy.ndarray
            and arguments[1] == (0,)
            and arguments[2] in (b"b", "b")
        )

    def is_scalar(arguments: tuple[Any, ...]) -> bool:
        """True for the type of a number and its bytes."""
        return (
            len(arguments) == 2
            and is_numeric(arguments[0])
            and type(arguments[1]) is bytes
            and len(arguments[1]) == arguments[0].itemsize
        )

    functions = multiarray()
    return {
        id(numpy.dtype): is_type_code,
        id(functions._reconstruct): is_empty_array,
        id(functions.scalar): is_scalar,
    }


def is_numeric(dtype: Any) -> bool:
    """Return True for numpy's type of a number, without fields and without objects."""
    import numpy

    return (
        isinstance(dtype, numpy.dtype)
        and dtype.kind in NUMERIC_KINDS
        and dtype.fields is None
        and dtype.subdtype is None
        and not dtype.hasobject
    )


def check_dtype_state(dtype: Any, state: Any) -> str | None:
    """Return what is wrong with the state that a pickle gives a dtype of numpy, in words.

    Fields, sizes and flags may turn a number into a pointer to an object: only the order of the
    bytes is allowed.
    """
    if not is_numeric(dtype):
        return f"the type {dtype} of numpy; allowed: numbers"
    is_plain = (
        type(state) is tuple
        and len(state) in (8, 9)
        and state[0] in (3, 4)
        and state[1] in ("<", ">", "|", "=")
        and state[2:5] == (None, None, None)
        and state[5:8] == (-1, -1, 0)
        and not any(state[8:])
    )
    return None if is_plain else f"a type of numpy with the state {str(state)[:60]}"


def check_array_state(state: Any) -> str | None:
    """Return what is wrong with the state that a pickle gives an array of numpy, in words."""
    if type(state) is not tuple or len(state) != 5:
        return "an array of numpy without its five parts"
    version, shape, dtype, is_fortran, content = state
    if not is_numeric(dtype):
        return f"an array of numpy of the type {str(dtype)[:60]}; allowed: numbers"
    is_whole = (
        version == 1
        and type(shape) is tuple
        and all(type(size) is int and size >= 0 for size in shape)
        and is_fortran in (0, 1)
        and type(content) is bytes
        and math.prod(shape) * dtype.itemsize == len(content)
    )
    return None if is_whole else "an array of numpy whose bytes are not those of its shape"


def check_model_state(state: Any) -> str | None:
    """Return what is wrong with the state of a model of sentencepiece, in words.

    It is the model as the library writes it, alone or, since 0.2.2, beside settings.
    """
    values = list(state.values()) if type(state) is dict else [state]
    kinds = {type(value) for value in values if not any(value is kind for kind in RETURN_TYPES)}
    is_model = bytes in kinds and kinds <= set(SCALARS)
    return None if is_model else "a model of sentencepiece with another state than its bytes"


def _torch_rules(torch: ModuleType) -> dict[int, ArgumentRule]:
    """Return the rules of the functions that make tensors."""

    def is_storage(value: object) -> bool:
        return type(value).__name__.endswith("Storage") and type(value).__module__ in MODULES

    def is_hooks(value: object) -> bool:
        """True for no hooks; a hook would be called in the backward pass."""
        return type(value) is collections.OrderedDict and not value

    def is_tensor(arguments: tuple[Any, ...]) -> bool:
        """True for storage, offset, size and stride, and what the versions of torch add."""
        return (
            len(arguments) >= 4
            and is_storage(arguments[0])
            and type(arguments[1]) is int
            and is_ints(arguments[2])
            and is_ints(arguments[3])
            and all(
                type(x) is bool or x is None or is_hooks(x) or type(x) is torch.dtype
                for x in arguments[4:]
            )
        )

    def is_parameter(arguments: tuple[Any, ...]) -> bool:
        """True for a tensor, whether it is trained, no hooks, and the attributes of a parameter."""
        return (
            len(arguments) in (3, 4)
            and isinstance(arguments[0], torch.Tensor)
            and type(arguments[1]) is bool
            and is_hooks(arguments[2])
            and all(_is_attributes(x) for x in arguments[3:])
        )

    def is_device(arguments: tuple[Any, ...]) -> bool:
        """True for the kind of a device and its number."""
        return 1 <= len(arguments) <= 2 and all(type(x) in (str, int) for x in arguments)

    def is_size(arguments: tuple[Any, ...]) -> bool:
        """True for the sizes of a torch.Size."""
        return len(arguments) == 1 and is_ints(arguments[0])

    rules: dict[int, ArgumentRule] = {id(torch.Size): is_size, id(torch.device): is_device}
    for name, rule in (
        ("_rebuild_tensor", is_tensor),
        ("_rebuild_tensor_v2", is_tensor),
        ("_rebuild_tensor_v3", is_tensor),
        ("_rebuild_parameter", is_parameter),
        ("_rebuild_parameter_with_state", is_parameter),
    ):
        if hasattr(torch._utils, name):  # by version
            rules[id(getattr(torch._utils, name))] = rule
    return rules


MODULES = ("torch", "torch.storage")  # of the classes of storages


def _is_attributes(state: object) -> bool:
    """Return True for a dict of attributes none of which is Python's or torch's own."""
    return type(state) is dict and all(
        type(name) is str and not name.startswith("_") for name in state
    )


def argument_rules(torch: ModuleType) -> dict[int, ArgumentRule]:
    """Return {id of a class or function: rule of its arguments}."""
    return {**_python_rules(), **_numpy_rules(), **_torch_rules(torch)}
