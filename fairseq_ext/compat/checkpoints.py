"""Checkpoints are read as data: nothing in them may run code.

torch.load refuses, with weights_only=True, every class or function that is not on a list. This
module gives torch the list for what fairseq 0.12.2 and its predecessors write, and words the error
for everything else.
"""

from __future__ import annotations

import os
import pickle
import re
from types import ModuleType, SimpleNamespace
from typing import Any, BinaryIO, Callable, NoReturn, Union

from .module_overlay import overlay_names
from .patch_registry import PatchedModule, patch, since
from .safe_globals import SafeGlobal, SafeGlobals, fairseq_safe_globals

# every module of fairseq (examples aside) that calls torch.load
LOADERS = (
    "fairseq.checkpoint_utils",
    "fairseq.distributed.utils",
    "fairseq.data.codedataset",
    "fairseq.models.text_to_speech.vocoder",
    "fairseq.modules.quantization.pq.em",
)

CheckpointFile = Union[str, "os.PathLike[str]", BinaryIO]

# kept here as well as in torch: before torch 2.6 the list is put together for each file
_added: SafeGlobals = []


class RefusedCheckpoint(pickle.UnpicklingError):
    """A checkpoint names a class or function that is not on the list of what may be loaded."""


def add_safe_globals(*entries: SafeGlobal) -> None:
    """Let checkpoints contain these classes or functions too; for plugins with states of their own.

    An entry is a class or function, or a pair (class or function, "module.name") for one that older
    files know by another name, as in torch's function of this name. Loading a checkpoint may call
    it with any arguments: add nothing that acts.
    """
    _added.extend(entries)
    torch = __import__("torch")  # not at the top: this module is imported before torch
    if hasattr(torch.serialization, "add_safe_globals") and _list_takes_names():
        torch.serialization.add_safe_globals(list(entries))


allow = add_safe_globals  # the old name, which plugins may call


def _list_takes_names() -> bool:
    """Return True if torch's list takes pairs (class, name), which torch 2.6 introduced.

    Without them the functions that numpy renamed cannot be listed.
    """
    return since("torch", 2, 6)() is None


@patch(
    *LOADERS,
    because="torch 2.6 loads with weights_only=True by default and refuses what fairseq writes; "
    "before it, loading a checkpoint runs any code in it (all versions: the error names class and "
    "file)",
)
def checkpoints_hold_data_only(module: PatchedModule) -> None:
    """Replace torch.load in the modules that call it."""
    torch = module.torch
    load = _load_with_list if _list_takes_names() else _load_with_unpickler
    if load is _load_with_list:
        torch.serialization.add_safe_globals(fairseq_safe_globals() + _added)

    def load_data(file: CheckpointFile, map_location: Any = None, **kwargs: Any) -> Any:
        """Return the content of a file, read as data whatever the caller asks for."""
        # weights_only and pickle_module of the caller would weaken this; fairseq passes neither
        kwargs.pop("weights_only", None)
        kwargs.pop("pickle_module", None)
        return load(torch, file, map_location, kwargs)

    overlay_names(module, "torch", load=load_data)


def _load_with_list(
    torch: ModuleType, file: CheckpointFile, map_location: Any, kwargs: dict[str, Any]
) -> Any:
    """Return the content of `file` as torch 2.6 and later read it, with its list."""
    try:
        return torch.load(file, map_location=map_location, weights_only=True, **kwargs)
    except pickle.UnpicklingError as error:
        # torch's versions word the refusal differently; all name the class
        match = re.search(r"(?:GLOBAL|class|type) ([\w.]+\.[\w.]+)", str(error))
        if match is None:  # a damaged file, not a forbidden one
            raise
        _refuse(match.group(1), file, error)


def _refuse(name: str, file: CheckpointFile, cause: Exception) -> NoReturn:
    """Raise RefusedCheckpoint for a file that contains `name`."""
    if isinstance(file, (str, os.PathLike)):
        where = os.fspath(file)
    else:
        where = getattr(file, "name", "the stream")
    raise RefusedCheckpoint(
        f"{where}: refused, it contains {name}, which is not among the classes that fairseq "
        "writes; loading it could run code. Take checkpoints from sources you trust only; if this "
        "one is yours, let the --user-dir call "
        f"fairseq_ext.compat.checkpoints.add_safe_globals({name})"
    ) from cause


def _load_with_unpickler(
    torch: ModuleType, file: CheckpointFile, map_location: Any, kwargs: dict[str, Any]
) -> Any:
    """Return the content of `file` with torch before 2.6, which cannot be given the list.

    An unpickler with the list takes the place of torch's own for weights_only=True while the file
    is read. The argument pickle_module would be the documented way, but torch 1.13 ignores it.
    """
    unpickler_class, refused = _restricted_unpickler(
        fairseq_safe_globals() + _added + _tensor_globals(torch)
    )

    def load(stream: BinaryIO, **options: Any) -> Any:
        """Return the content of a stream, as the module `pickle` has a function for it."""
        return unpickler_class(stream, **options).load()

    serialization: Any = torch.serialization
    present = serialization._weights_only_unpickler
    serialization._weights_only_unpickler = SimpleNamespace(Unpickler=unpickler_class, load=load)
    try:
        return torch.load(file, map_location=map_location, weights_only=True, **kwargs)
    except pickle.UnpicklingError as error:
        if not refused:
            raise
        _refuse(refused[0], file, error)
    finally:
        serialization._weights_only_unpickler = present


def _restricted_unpickler(entries: SafeGlobals) -> tuple[type[pickle.Unpickler], list[str]]:
    """Return an unpickler that knows the entries only, and the list of the names it refused."""
    from _compat_pickle import IMPORT_MAPPING, NAME_MAPPING

    by_name: dict[str, Callable[..., Any]] = {}
    for entry in entries:
        if isinstance(entry, tuple):
            by_name[entry[1]] = entry[0]  # the name that older files have
        else:
            by_name[f"{entry.__module__}.{entry.__qualname__}"] = entry
    refused: list[str] = []

    class Unpickler(pickle.Unpickler):
        def find_class(self, module_name: str, name: str) -> Any:
            """Return the entry of this name; UnpicklingError, with the name noted, without one."""
            # torch writes protocol 2, which has the names of Python 2
            module_name, name = NAME_MAPPING.get((module_name, name), (module_name, name))
            full_name = f"{IMPORT_MAPPING.get(module_name, module_name)}.{name}"
            if full_name not in by_name:
                refused.append(full_name)
                raise pickle.UnpicklingError(full_name)
            return by_name[full_name]

    return Unpickler, refused


def _tensor_globals(torch: ModuleType) -> SafeGlobals:
    """Return what a pickled tensor names: the functions that torch's own list has."""
    import _codecs

    utils = torch._utils
    # encode: how protocol 2 writes bytes
    entries: SafeGlobals = [_codecs.encode, torch.Size, torch.device, torch.nn.Parameter]
    for name in dir(utils):
        if re.fullmatch(r"_rebuild_(tensor(_v\d)?|parameter(_with_state)?)", name):
            entries.append(getattr(utils, name))
    # a pickled tensor names the class of its storage,
    # torch.FloatStorage and the like, and its dtype
    entries += [(getattr(torch, name), f"torch.{name}") for name in dir(torch) if "Storage" in name]
    entries += [(value, str(value)) for value in vars(torch).values() if type(value) is torch.dtype]
    return entries
