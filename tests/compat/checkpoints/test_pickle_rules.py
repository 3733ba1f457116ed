"""With which arguments a pickle may call what it names."""

import collections

import numpy
import pytest
import torch

from fairseq_ext.compat.checkpoints import pickle_rules


def rule(function):
    return pickle_rules.argument_rules(torch)[id(function)]


def test_what_python_numpy_and_torch_write_is_allowed():
    """Every call of a real pickle: the arguments of __reduce_ex__."""
    for value in (
        {1, "a"},
        frozenset((1,)),
        collections.Counter("aab"),
        collections.defaultdict(list),
        bytearray(b"ab"),
        slice(1, None, 2),
        numpy.dtype("f8"),
        numpy.float32(1),
        numpy.ones((2, 3)),
        torch.Size((1, 2)),
        torch.device("cpu"),
    ):
        function, arguments = value.__reduce_ex__(2)[:2]
        assert rule(function)(tuple(arguments)), value


@pytest.mark.parametrize(
    "function, arguments",
    [
        (bytearray, (10,)),
        (set, ("abc",)),
        (collections.defaultdict, (print,)),
        (numpy.dtype, ("O", False, True)),
        (numpy.dtype, ("V8", False, True)),
        (numpy.dtype, ([("a", "O")],)),
        (pickle_rules.multiarray().scalar, (numpy.dtype("f8"), b"abc")),
        (pickle_rules.multiarray()._reconstruct, (numpy.ndarray, (10**9,), b"b")),
        (torch._utils._rebuild_tensor_v2, (1, 0, (1,), (1,), False, collections.OrderedDict())),
    ],
)
def test_other_arguments_are_refused(function, arguments):
    assert not rule(function)(arguments)


def test_states_of_numpy():
    array = numpy.arange(3)
    _, _, state = array.__reduce_ex__(2)[:3]
    assert pickle_rules.check_array_state(state) is None
    assert pickle_rules.check_array_state((*state[:4], b"short")) is not None
    dtype = numpy.dtype("f8")
    assert pickle_rules.check_dtype_state(dtype, dtype.__reduce__()[2]) is None
    forged = (3, "|", None, ("a",), {"a": (numpy.dtype("O"), 0)}, 8, 8, 63)
    assert pickle_rules.check_dtype_state(dtype, forged) is not None


def test_deep_keys_are_no_keys():
    assert pickle_rules.is_key(("de", 1)) and pickle_rules.is_key("a")
    assert not pickle_rules.is_key((("a",),))
