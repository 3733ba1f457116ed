"""Plugins have names that numpy, Python, torch and sacrebleu dropped, other code does not."""

import collections.abc
import inspect
import math

import numpy
import pytest

from fairseq_ext.compat.patch_registry import since
from fairseq_ext.compat.versions import dataclass_defaults

IS_OLDER = since("numpy", 2, 0)() is not None
pytestmark = pytest.mark.skipif(IS_OLDER, reason="numpy before 2.0 has some of these names")

PLUGIN = """
import collections
import inspect
import numpy as np
from collections import Iterable, Mapping
kinds = [np.int, np.float, np.object, np.bool_]
numbers = np.zeros(3, dtype=np.int)
bounds = [np.Inf, np.NINF, np.product([2, 3]), np.float_(1.5)]
is_iterable = isinstance([], Iterable) and not isinstance([], collections.Mapping)
has_other = hasattr(np, "no_such_name")
further = [np.asscalar(np.ones(1)), np.unicode, np.bool8, np.round_(1.6), np.isnan(np.NAN)]
arguments = inspect.getargspec(lambda first, second=2, *rest, **named: None)
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
    assert names["further"] == [1.0, str, numpy.bool_, 2.0, True]
    arguments = names["arguments"]
    assert arguments == (["first", "second"], "rest", "named", (2,))
    assert (arguments.args, arguments.keywords) == (["first", "second"], "named")


def test_others(user_dir):
    with pytest.raises(ImportError, match="Iterable"):
        run(user_dir.parent / "elsewhere")
    assert not hasattr(numpy, "int") and not hasattr(numpy, "Inf")
    assert not hasattr(numpy, "no_such_name") and not hasattr(numpy, "asscalar")
    assert not hasattr(inspect, "ArgSpec")


# as the reduce_metrics of fairseq 0.10 asks for it, with sums of numpy
BLEU = """
import inspect
import numpy as np
import sacrebleu
names = inspect.getfullargspec(sacrebleu.compute_bleu)[0]
counts, totals = np.array([3, 2, 1, 0]), np.array([4, 3, 2, 1])
score = sacrebleu.compute_bleu(
    correct=counts, total=totals, sys_len=np.int64(4), ref_len=np.int64(5), smooth_method="exp"
)
"""


def test_bleu_of_sums(user_dir):
    sacrebleu = pytest.importorskip("sacrebleu", minversion="2.0")
    names = {"__name__": "plugin"}
    exec(compile(BLEU, str(user_dir / "plugin.py"), "exec"), names)
    assert "smooth_method" in names["names"]
    # precisions 3/4, 2/3, 1/2 and, smoothed, 1/2 of 1/1; the brevity penalty is exp(1 - 5/4)
    mean = math.prod((3 / 4, 2 / 3, 1 / 2, 1 / 2)) ** (1 / 4)
    assert names["score"].score == pytest.approx(100 * math.exp(-1 / 4) * mean)
    assert not hasattr(sacrebleu, "compute_bleu")


def test_names_of_python_2_and_3():
    """Of torch._six: forks and plugins import them in either way."""
    import torch._six
    from torch._six import container_abcs, inf, string_classes

    assert (inf, torch._six.nan != torch._six.nan) == (math.inf, True)
    assert isinstance("text", string_classes) and isinstance(1, torch._six.int_classes)
    assert container_abcs.Iterable is collections.abc.Iterable
