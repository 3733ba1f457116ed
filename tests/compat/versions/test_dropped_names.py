"""Plugins have names that numpy and Python dropped, other code does not."""

import math

import numpy
import pytest

from fairseq_ext.compat.patch_registry import since
from fairseq_ext.compat.versions import dataclass_defaults

IS_OLDER = since("numpy", 2, 0)() is not None
pytestmark = pytest.mark.skipif(IS_OLDER, reason="numpy before 2.0 has some of these names")

PLUGIN = """
import collections
import numpy as np
from collections import Iterable, Mapping
kinds = [np.int, np.float, np.object, np.bool_]
numbers = np.zeros(3, dtype=np.int)
bounds = [np.Inf, np.NINF, np.product([2, 3]), np.float_(1.5)]
is_iterable = isinstance([], Iterable) and not isinstance([], collections.Mapping)
has_other = hasattr(np, "no_such_name")
"""


@pytest.fixture
def user_dir(tmp_path, monkeypatch):
    monkeypatch.setenv(dataclass_defaults.USER_DIRS_VARIABLE, "")
    dataclass_defaults.note_place(str(tmp_path))
    return tmp_path


def run(place):
    names = {"__name__": "plugin"}
    exec(compile(PLUGIN, str(place / "plugin.py"), "exec"), names)
    return names


def test_plugins(user_dir):
    names = run(user_dir)
    assert names["kinds"] == [int, float, object, numpy.bool_]
    assert names["numbers"].dtype == numpy.int64
    assert names["bounds"] == [math.inf, -math.inf, 6, 1.5]
    assert names["is_iterable"] and not names["has_other"]


def test_others(user_dir):
    with pytest.raises(ImportError, match="Iterable"):
        run(user_dir.parent / "elsewhere")
    assert not hasattr(numpy, "int") and not hasattr(numpy, "Inf")
    assert not hasattr(numpy, "no_such_name")
