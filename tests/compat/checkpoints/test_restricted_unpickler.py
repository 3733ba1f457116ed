"""The unpickler alone; tests/compat/test_payloads.py reads files with it."""

import argparse
import io
import pickle

import pytest
import torch

from fairseq_ext.compat.checkpoints.restricted_unpickler import GlobalTable, Refusal, unpickler_for
from fairseq_ext.compat.checkpoints.safe_globals import fairseq_safe_globals, tensor_globals


class Added:
    """A state of a plugin."""

    def __init__(self, value):
        self.value = value

    def __reduce__(self):
        return Added, (self.value,)


def load(raw, added=()):
    table = GlobalTable(fairseq_safe_globals() + tensor_globals(torch), list(added), torch)
    unpickler, refused = unpickler_for(table, None, len(raw))
    try:
        return unpickler(io.BytesIO(raw)).load()
    except Refusal as refusal:
        assert refused == [refusal]
        raise


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_values_of_each_protocol(protocol):
    value = {"a": [1, 2.5, None, (True, "x"), {3}, b"y"], "b": argparse.Namespace(c={1: 2})}
    assert load(pickle.dumps(value, protocol)) == value


def test_plugins_may_be_called_with_anything():
    raw = pickle.dumps(Added(3), 2)
    with pytest.raises(Refusal, match="Added"):
        load(raw)
    assert load(raw, [Added]).value == 3


def test_damage_is_no_refusal():
    with pytest.raises(pickle.UnpicklingError, match="Error") as caught:
        load(b"\x80\x02(t\x86.")
    assert not isinstance(caught.value, Refusal)
