"""The classes and functions that fairseq's checkpoints name.

Each entry is a class or function, or a pair (class or function, "module.name") when files know it
by another name than the present one, as in torch's `add_safe_globals`. `pickle_rules` says with
which arguments they may be called.
"""

from __future__ import annotations

import argparse
import collections
import importlib
import re
import typing
from types import ModuleType
from typing import Any, Callable, List, Tuple, Union

from .pickle_rules import multiarray

SafeGlobal = Union[Callable[..., Any], Tuple[Callable[..., Any], str]]
SafeGlobals = List[SafeGlobal]


def fairseq_safe_globals() -> SafeGlobals:
    """Return the whole list; imports numpy, omegaconf and the parts of fairseq it names."""
    return process_safe_globals() + _numpy_globals() + _coder_globals()


def process_safe_globals() -> SafeGlobals:
    """Return the part of the list that is safe for any reader that calls with any arguments.

    torch's own unpickler calls a listed class with whatever a file says. numpy's types could then
    be made to take bytes for pointers.
    """
    return _python_globals() + _fairseq_globals() + _omegaconf_globals()


def _python_globals() -> SafeGlobals:
    """Return the containers and numbers of Python that old states hold."""
    # Namespace: options of checkpoints before fairseq 0.10; sets: some task states
    return [
        argparse.Namespace,
        collections.OrderedDict,
        collections.defaultdict,
        collections.Counter,
        dict,
        list,
        tuple,
        set,
        frozenset,
        int,
        float,
        str,
        bool,
        bytes,
        complex,
        bytearray,
        slice,
        (typing.Any, "typing.Any"),
    ]


def _fairseq_globals() -> SafeGlobals:
    """Return fairseq's dictionaries and meters, under their present names and those before 0.10."""
    from fairseq.data.dictionary import Dictionary
    from fairseq.logging import meters

    # what rank 0 sends to the others on resume; not an attribute yet while its module is patched
    distributed = importlib.import_module("fairseq.distributed.utils")
    entries: SafeGlobals = [Dictionary, distributed._TensorPlaceholder]
    for name in ("AverageMeter", "TimeMeter", "StopwatchMeter"):
        meter = getattr(meters, name)
        # fairseq before 0.10 pickled its meters, which were in fairseq/meters.py
        entries += [meter, (meter, f"fairseq.meters.{name}")]
    return entries


def _numpy_globals() -> SafeGlobals:
    """Return numpy's arrays and scalars: metrics with --eval-bleu, sizes in old task states."""
    import numpy

    entries: SafeGlobals = [numpy.ndarray, numpy.dtype]
    for name in ("_reconstruct", "scalar"):
        function = getattr(multiarray(), name)
        # numpy 2 writes numpy._core, numpy 1 wrote numpy.core: files of both are read with both
        for module in ("numpy.core.multiarray", "numpy._core.multiarray"):
            entries.append((function, f"{module}.{name}"))
    # numpy's codes: bool, integers, floats, complex numbers
    dtypes = {type(numpy.dtype(code)) for code in "?bBhHiIlLqQefdFD"}
    entries += [(dtype, f"{dtype.__module__}.{dtype.__qualname__}") for dtype in dtypes]
    scalars = {numpy.dtype(code).type for code in "?bBhHiIlLqQefd"}
    entries += [(scalar, f"numpy.{scalar.__name__}") for scalar in scalars]
    return entries


def _coder_globals() -> SafeGlobals:
    """Return the coder of sentencepiece with its model: tasks of plugins, such as AV-HuBERT's."""
    try:
        from sentencepiece import SentencePieceProcessor
    except ImportError:  # such a checkpoint is refused, by the name of the model
        return []
    from fairseq.data.encoders.sentencepiece_bpe import SentencepieceBPE

    return [
        SentencepieceBPE,
        (SentencePieceProcessor, "sentencepiece.SentencePieceProcessor"),
    ]


def tensor_globals(torch: ModuleType) -> SafeGlobals:
    """Return what a pickled tensor names: functions, classes of storages, types of numbers."""
    import _codecs

    utils = torch._utils
    # encode: how protocol 2 writes bytes
    entries: SafeGlobals = [_codecs.encode, torch.Size, torch.device]
    for name in dir(utils):
        if re.fullmatch(r"_rebuild_(tensor(_v\d)?|parameter(_with_state)?)", name):
            entries.append(getattr(utils, name))
    storages = [name for name in dir(torch) if name.endswith("Storage")]
    # torch.FloatStorage and the like; torch.storage.UntypedStorage
    for module in ("torch", "torch.storage"):
        entries += [(getattr(torch, name), f"{module}.{name}") for name in storages]
    entries += [(value, str(value)) for value in vars(torch).values() if type(value) is torch.dtype]
    return entries


def _omegaconf_globals() -> SafeGlobals:
    """Return the classes of configurations, as resume on several workers and hydra keep them."""
    import omegaconf
    from omegaconf import base, nodes

    entries: SafeGlobals = [omegaconf.DictConfig, omegaconf.ListConfig]
    for module, names in (
        (base, "Metadata ContainerMetadata"),
        (nodes, "AnyNode ValueNode StringNode IntegerNode FloatNode BooleanNode EnumNode"),
    ):
        # which of them exist depends on omegaconf's version
        entries += [getattr(module, name) for name in names.split() if hasattr(module, name)]
    return entries
