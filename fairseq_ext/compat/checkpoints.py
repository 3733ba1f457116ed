"""Checkpoints are read as data: nothing in them may run code.

torch.load refuses, with weights_only=True, every class or function that is not on a list. Here is
the list for what fairseq 0.12.2 and its predecessors write, and the error for everything else.
"""

import os
import pickle
import re

from .globals_allowed import allowed_globals
from .registry import patch, since
from .shadow import shadow

# every module of fairseq (examples aside) that calls torch.load
LOADERS = (
    "fairseq.checkpoint_utils",
    "fairseq.distributed.utils",
    "fairseq.data.codedataset",
    "fairseq.models.text_to_speech.vocoder",
    "fairseq.modules.quantization.pq.em",
)

_extra = []


class RefusedCheckpoint(pickle.UnpicklingError):
    """A checkpoint names something that is not on the list of what may be loaded."""


def allow(*things):
    """Let checkpoints contain these classes or functions too; for plugins with own state.

    A thing is a class or function, or a pair (thing, "module.name") for one that older files know
    by another name. Loading a checkpoint may call it with any arguments: allow nothing that acts.
    """
    _extra.extend(things)
    torch = __import__("torch")
    if hasattr(torch.serialization, "add_safe_globals") and _list_takes_names(torch):
        torch.serialization.add_safe_globals(list(things))


def _list_takes_names(torch):
    # pairs (thing, name) came with torch 2.6; before that numpy's renamed functions cannot be told
    return since("torch", 2, 6)() is None


@patch(
    *LOADERS,
    because="torch 2.6 loads with weights_only=True by default and refuses what fairseq writes; "
    "before it, loading a checkpoint runs any code in it (all versions: the error names class and "
    "file)",
)
def checkpoints_hold_data_only(module):
    """Replace torch.load in the modules that call it."""
    torch = module.torch
    load = _load_listed if _list_takes_names(torch) else _load_restricted
    if load is _load_listed:
        torch.serialization.add_safe_globals(allowed_globals() + _extra)

    def load_data(file, map_location=None, **named):
        # weights_only and pickle_module of the caller would weaken this; fairseq passes neither
        named.pop("weights_only", None)
        named.pop("pickle_module", None)
        return load(torch, file, map_location, named)

    shadow(module, "torch", load=load_data)


def _load_listed(torch, file, map_location, named):
    try:
        return torch.load(file, map_location=map_location, weights_only=True, **named)
    except pickle.UnpicklingError as error:
        found = re.search(r"(?:GLOBAL|class|type) ([\w.]+\.[\w.]+)", str(error))
        if found is None:
            raise
        raise _refusal(found.group(1), file) from error


def _refusal(name, file):
    named = isinstance(file, (str, os.PathLike))
    where = os.fspath(file) if named else getattr(file, "name", "the stream")
    return RefusedCheckpoint(
        f"{where}: refused, it contains {name}, which is not among the classes that fairseq "
        "writes; loading it could run code. Take checkpoints from sources you trust only; if this "
        f"one is yours, let the --user-dir call fairseq_ext.compat.checkpoints.allow({name})"
    )


def _load_restricted(torch, file, map_location, named):
    """torch < 2.6: torch.load cannot be given the list; an unpickler of ours holds it.

    It takes the place of torch's own for weights_only=True while the file is read. The argument
    pickle_module would be the documented way, but torch 1.13 ignores it.
    """
    from _compat_pickle import IMPORT_MAPPING, NAME_MAPPING
    from types import SimpleNamespace

    names = {}
    for entry in allowed_globals() + _extra + _tensor_globals(torch):
        thing, name = entry if isinstance(entry, tuple) else (entry, None)
        names[name or f"{thing.__module__}.{thing.__qualname__}"] = thing
    refused = []

    class Unpickler(pickle.Unpickler):
        def find_class(self, module_name, name):
            # torch writes protocol 2, which has the names of Python 2
            module_name, name = NAME_MAPPING.get((module_name, name), (module_name, name))
            full = f"{IMPORT_MAPPING.get(module_name, module_name)}.{name}"
            if full not in names:
                refused.append(full)
                raise pickle.UnpicklingError(full)
            return names[full]

    def load(stream, **options):
        return Unpickler(stream, **options).load()

    serialization = torch.serialization
    present = serialization._weights_only_unpickler
    serialization._weights_only_unpickler = SimpleNamespace(Unpickler=Unpickler, load=load)
    try:
        return torch.load(file, map_location=map_location, weights_only=True, **named)
    except pickle.UnpicklingError as error:
        if not refused:
            raise
        raise _refusal(refused[0], file) from error
    finally:
        serialization._weights_only_unpickler = present


def _tensor_globals(torch):
    """What a pickled tensor names: the functions torch's own weights_only list has."""
    import _codecs

    utils = torch._utils
    # encode: how protocol 2 writes bytes
    things = [_codecs.encode, torch.Size, torch.device, torch.nn.Parameter]
    for name in dir(utils):
        if re.fullmatch(r"_rebuild_(tensor(_v\d)?|parameter(_with_state)?)", name):
            things.append(getattr(utils, name))
    things += [(getattr(torch, name), f"torch.{name}") for name in dir(torch) if "Storage" in name]
    things += [(value, str(value)) for value in vars(torch).values() if type(value) is torch.dtype]
    return things
