"""Names that numpy, Python, torch and sacrebleu dropped, for the code of plugins and of forks."""

from __future__ import annotations

import collections
import collections.abc
import functools
import inspect
import math
import queue
import sys
import types
from types import FrameType, ModuleType
from typing import Any, Callable, NamedTuple

from ..patch_registry import BEFORE, patch, since
from .dataclass_defaults import TOLERATED_PACKAGES, is_in_user_dir

# {name that numpy 1.24 or 2.0 dropped: what it was}
OF_NUMPY: dict[str, Any] = {
    **{kind.__name__: kind for kind in (bool, complex, float, int, object, str)},
    **{name: math.inf for name in ("Inf", "Infinity", "PINF", "infty")},
    **{"NINF": -math.inf, "NaN": math.nan, "NAN": math.nan, "unicode": str},
    **{"asscalar": lambda array: array.item(), "compat": types.SimpleNamespace(long=int)},
}
# {name that numpy 2.0 or a later version dropped: its present name}
RENAMED_IN_NUMPY = {
    **{"alltrue": "all", "complex_": "complex128", "cumproduct": "cumprod", "float_": "float64"},
    **{"in1d": "isin", "product": "prod", "row_stack": "vstack", "sometrue": "any"},
    **{"string_": "bytes_", "trapz": "trapezoid", "unicode_": "str_", "bool8": "bool_"},
    **{"longfloat": "longdouble", "round_": "round"},
}
# what torch._six had, until torch 1.8 or 1.13
OF_TORCH_SIX: dict[str, Any] = {
    **{"inf": math.inf, "nan": math.nan, "string_classes": (str, bytes), "int_classes": int},
    **{"container_abcs": collections.abc, "queue": queue, "FileNotFoundError": FileNotFoundError},
    **{"PY2": False, "PY3": True, "PY37": True},
}


class ArgSpec(NamedTuple):
    """What inspect.getargspec returned of a function: names of arguments, and defaults."""

    args: list[str]
    varargs: str | None
    keywords: str | None
    defaults: tuple[Any, ...] | None


def is_of_plugin(caller: FrameType) -> bool:
    """True if the code that asks for a name is of a --user-dir, of fairseq or of a fork."""
    package = str(caller.f_globals.get("__name__")).partition(".")[0]
    return package in TOLERATED_PACKAGES or is_in_user_dir(caller.f_code.co_filename)


def answer_plugins(module: ModuleType, names: dict[str, Any]) -> None:
    """Let a module have these names for plugins, for all others be as it is."""
    others = vars(module).get("__getattr__")
    if getattr(others, "answers_plugins", False):  # an import of fairseq that failed did it
        return

    def __getattr__(name: str) -> Any:
        if name in names and is_of_plugin(sys._getframe(1)):
            return names[name]
        if others is not None:
            return others(name)
        raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")

    asked: Any = functools.wraps(others)(__getattr__) if others else __getattr__
    asked.answers_plugins = True
    vars(module)["__getattr__"] = asked


@patch(
    "fairseq",
    because="Python 3.10 moved the abstract classes of collections, such as Iterable, to "
    "collections.abc, and 3.11 dropped inspect.getargspec: plugins fail",
    conditions=[since("python", 3, 10)],
    moment=BEFORE,
    for_older=True,
)
def plugins_have_former_names_of_python(module_name: str) -> None:
    """Let plugins import classes from collections, and read the arguments of functions."""
    answer_plugins(
        collections, {name: getattr(collections.abc, name) for name in collections.abc.__all__}
    )

    def getargspec(func: Callable[..., Any]) -> ArgSpec:
        """Return the names of the arguments of a function, and the defaults of the last ones."""
        return ArgSpec(*inspect.getfullargspec(func)[:4])

    answer_plugins(inspect, {"ArgSpec": ArgSpec, "getargspec": getargspec})


@patch(
    "fairseq",
    because="torch 2.0 dropped torch._six: plugins and forks that import inf, string_classes or "
    "container_abcs from it fail with \"No module named 'torch._six'\"",
    conditions=[since("torch", 2, 0)],
    moment=BEFORE,
    for_older=True,
)
def plugins_have_former_names_of_torch(module_name: str) -> None:
    """Provide the module `torch._six` with the names it had."""
    import torch

    if "torch._six" not in sys.modules:
        module = types.ModuleType("torch._six", "Names of Python 2 and 3, as until torch 1.13.")
        vars(module).update(OF_TORCH_SIX)
        sys.modules[module.__name__] = module
        vars(torch)["_six"] = module  # as an import does


@patch(
    "fairseq",
    because="numpy 1.24 dropped np.int and others, 2.0 np.Inf, np.float_ and more: plugins fail "
    "with \"has no attribute 'int'\"",
    conditions=[since("numpy", 1, 24)],
    moment=BEFORE,  # forks of fairseq before 0.12 read such names where they are imported
    for_older=True,
)
def plugins_have_former_names_of_numpy(module_name: str) -> None:
    """Let plugins read the names of numpy that it has dropped."""
    import numpy

    present = {name: getattr(numpy, new, None) for name, new in RENAMED_IN_NUMPY.items()}
    answer_plugins(numpy, {**OF_NUMPY, **present})


@patch(
    "sacrebleu",
    because="sacrebleu 2.0 dropped compute_bleu: the validation with --eval-bleu of tasks for "
    "fairseq 0.10 and 0.11 that have a copy of translation's reduce_metrics fails with \"has no "
    "attribute 'compute_bleu'\"",
    conditions=[since("sacrebleu", 2, 0)],
    for_older=True,
)
def plugins_have_former_names_of_sacrebleu(module: ModuleType) -> None:
    """Let plugins compute BLEU of sums by the function that sacrebleu had for that."""

    def compute_bleu(
        correct: Any,
        total: Any,
        sys_len: Any,
        ref_len: Any,
        smooth_method: str = "none",
        smooth_value: float | None = None,
        use_effective_order: bool = False,
    ) -> Any:
        return vars(module)["BLEU"].compute_bleu(
            [int(count) for count in correct],
            [int(count) for count in total],
            int(sys_len),
            int(ref_len),
            smooth_method,
            smooth_value,
            use_effective_order,
        )

    answer_plugins(module, {"compute_bleu": compute_bleu})
