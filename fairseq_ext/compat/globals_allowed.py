"""The classes and functions that fairseq's checkpoints name.

Each entry is a class or function, or a pair (thing, "module.name") when files know it by another
name than the present one. None of them does anything but build a value from its arguments.
"""

import argparse
import collections
import typing


def allowed_globals():
    """The whole list; imports numpy, omegaconf and the parts of fairseq it names."""
    return _plain() + _fairseq() + _numpy() + _omegaconf()


def _plain():
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
        complex,
        bytearray,
        slice,
        (typing.Any, "typing.Any"),
    ]


def _fairseq():
    import importlib

    from fairseq.data.dictionary import Dictionary
    from fairseq.logging import meters

    # what rank 0 sends to the others on resume; not an attribute yet while its module is patched
    distributed = importlib.import_module("fairseq.distributed.utils")
    found = [Dictionary, distributed._TensorPlaceholder]
    for name in ("AverageMeter", "TimeMeter", "StopwatchMeter"):
        meter = getattr(meters, name)
        # fairseq before 0.10 pickled its meters, which were in fairseq/meters.py
        found += [meter, (meter, f"fairseq.meters.{name}")]
    return found


def _numpy():
    """numpy arrays and scalars: metrics with --eval-bleu, sizes in old task states."""
    import numpy

    try:
        from numpy._core import multiarray  # numpy 2
    except ImportError:
        from numpy.core import multiarray
    found = [numpy.ndarray, numpy.dtype]
    for name in ("_reconstruct", "scalar"):
        function = getattr(multiarray, name)
        # numpy 2 writes numpy._core, numpy 1 wrote numpy.core: files of both are read with both
        for module in ("numpy.core.multiarray", "numpy._core.multiarray"):
            found.append((function, f"{module}.{name}"))
    kinds = {type(numpy.dtype(code)) for code in "?bBhHiIlLqQefdFD"}
    found += [(kind, f"{kind.__module__}.{kind.__qualname__}") for kind in kinds]
    scalars = {numpy.dtype(code).type for code in "?bBhHiIlLqQefd"}
    found += [(scalar, f"numpy.{scalar.__name__}") for scalar in scalars]
    return found


def _omegaconf():
    """The configuration, as resume on several workers sends it and hydra runs keep it."""
    import omegaconf
    from omegaconf import base, nodes

    found = [omegaconf.DictConfig, omegaconf.ListConfig]
    for module, names in (
        (base, "Metadata ContainerMetadata"),
        (nodes, "AnyNode ValueNode StringNode IntegerNode FloatNode BooleanNode EnumNode"),
    ):
        found += [getattr(module, name) for name in names.split() if hasattr(module, name)]
    return found
