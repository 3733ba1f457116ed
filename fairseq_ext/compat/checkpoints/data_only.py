"""Checkpoints are read as data: nothing in them may run code.

A checkpoint is a pickle, and pickles call functions. `restricted_unpickler` makes what is on the
list of `safe_globals` and refuses everything else. This module puts it into the place of torch's
own unpickler for weights_only=True wherever fairseq reads a checkpoint, and words the errors.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import pickle
import threading
from types import FunctionType, ModuleType
from typing import Any, BinaryIO, Callable, Iterator, NoReturn

from ..imported_examples import modules_of_examples
from ..module_overlay import overlay_names
from ..patch_registry import PatchedModule, patch, since
from .files import CheckpointFile, file_name, inspect_container
from .interpolations import MAX_VALUES, find_resolver
from .reference_sizes import multiplies
from .restricted_unpickler import GlobalTable, unpickler_for
from .safe_globals import (
    SafeGlobal,
    SafeGlobals,
    fairseq_safe_globals,
    process_safe_globals,
    tensor_globals,
)

# every module of fairseq (examples aside) that calls torch.load
LOADERS = (
    "fairseq.checkpoint_utils",
    "fairseq.distributed.utils",
    "fairseq.data.codedataset",
    "fairseq.models.text_to_speech.vocoder",
    "fairseq.modules.quantization.pq.em",
)

# the same of fairseq's examples, below their folder
EXAMPLE_LOADERS = (
    "MMPT.mmpt.models.mmfusion",
    "MMPT.mmpt.tasks.task",
    "hubert.update_ckpt",
    "speech_recognition.new.decoders.flashlight_decoder",
    "speech_recognition.w2l_decoder",
    "speech_synthesis.preprocessing.denoiser.pretrained",
    "speech_synthesis.preprocessing.speaker_embedder",
    "speech_text_joint_to_text.scripts.convert_model",
    "textless_nlp.gslm.speech2unit.pretrained.cpc_feature_reader",
    "textless_nlp.gslm.unit2speech.utils",
    "textless_nlp.pgslm.data_utils",
    "textless_nlp.pgslm.naive_decoder",
)

# parts of a checkpoint that hold the configuration: of fairseq 0.10 and later, and before
CONFIGURATIONS = ("cfg", "args")
# one load at a time exchanges torch's unpickler
_loading = threading.RLock()
# what torch says when it cannot have the memory that a file asks for
NO_MEMORY = ("not enough memory", "can't allocate memory", "Cannot allocate memory")

_added: SafeGlobals = []


class RefusedCheckpoint(pickle.UnpicklingError):
    """A checkpoint contains what could run code; the message names the file and what it is."""


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
    *modules_of_examples(*EXAMPLE_LOADERS),
    because="torch 2.6 loads with weights_only=True by default and refuses what fairseq writes; "
    "before it, loading a checkpoint runs any code in it (all versions: functions that may be "
    "named have arguments that do harm)",
)
def checkpoints_hold_data_only(module: PatchedModule) -> None:
    """Replace torch.load in the modules that call it."""
    torch = module.torch
    if _list_takes_names():
        # for plugins that call torch.load themselves
        torch.serialization.add_safe_globals(process_safe_globals() + _added)

    def load_data(file: CheckpointFile, map_location: Any = None, **kwargs: Any) -> Any:
        """Return the content of a file, read as data whatever the caller asks for."""
        # weights_only and pickle_module of the caller would weaken this; fairseq passes neither
        kwargs.pop("weights_only", None)
        kwargs.pop("pickle_module", None)
        return load_restricted(torch, file, map_location, kwargs)

    overlay_names(module, "torch", load=load_data)


@patch(
    "fairseq.models.speech_to_text.xm_transformer",
    because="before torch 2.6, the checkpoint of --load-pretrained-decoder-from may run any code",
)
def pretrained_decoders_hold_data_only(module: PatchedModule) -> None:
    """Replace torch.load for the function that calls it.

    TorchScript compiles layers of this module, and knows the module torch itself only.
    """
    checkpoint_utils = importlib.import_module("fairseq.checkpoint_utils")
    model = module.XMTransformerModel
    stock = model.__dict__["build_model"].__func__
    variables = {**stock.__globals__, "torch": checkpoint_utils.torch}
    function = FunctionType(stock.__code__, variables, stock.__name__, stock.__defaults__)
    model.build_model = classmethod(functools.update_wrapper(function, stock))


def load_restricted(
    torch: ModuleType, file: CheckpointFile, map_location: Any, kwargs: dict[str, Any]
) -> Any:
    """Return the content of `file`, read by the restricted unpickler.

    It takes the place of torch's own while the file is read. The argument pickle_module would be
    the documented way, but it is for weights_only=False.

    Raises RefusedCheckpoint, and pickle.UnpicklingError for a damaged file.
    """
    container = inspect_container(file)
    if container.refusal is not None:
        _refuse(container.refusal, file)
    table = GlobalTable(fairseq_safe_globals() + tensor_globals(torch), _all_added(torch), torch)
    unpickler, refused = unpickler_for(table, container.storages, container.size)

    def load(stream: BinaryIO, **options: Any) -> Any:
        """Return the content of a stream, as the module `pickle` has a function for it."""
        return unpickler(stream, **options).load()

    try:
        with _unpickled_by(torch.serialization, unpickler, load):
            state = torch.load(file, map_location=map_location, weights_only=True, **kwargs)
    except pickle.UnpicklingError as error:
        if refused:
            _refuse(str(refused[0]), file)
        # torch adds the advice to load the file without weights_only
        raise pickle.UnpicklingError(str(error.__context__ or error)) from None
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, MemoryError) or any(text in str(error) for text in NO_MEMORY):
            _refuse("more than fits into the memory", file)
        raise
    for part in CONFIGURATIONS if isinstance(state, dict) else ():
        check_configuration(state.get(part), file_name(file))
    return state


class _OfOneThread:
    """What stands for a module in the thread that has made this; the others see the module."""

    def __init__(self, module: Any, **names: Any):
        self._module, self._names, self._thread = module, names, threading.get_ident()

    def __getattr__(self, name: str) -> Any:
        if name in self._names and threading.get_ident() == self._thread:
            return self._names[name]
        return getattr(self._module, name)


@contextlib.contextmanager
def _unpickled_by(serialization: Any, unpickler: Any, load: Callable[..., Any]) -> Iterator[None]:
    """Let torch.load of this thread use the restricted unpickler instead of torch's own."""
    with _loading:
        present = serialization._weights_only_unpickler
        names = {"Unpickler": unpickler, "load": load}
        serialization._weights_only_unpickler = _OfOneThread(present, **names)
        try:
            yield
        finally:
            serialization._weights_only_unpickler = present


def _all_added(torch: ModuleType) -> SafeGlobals:
    """Return what plugins have added, here or with torch's own function."""
    if not _list_takes_names():
        return _added
    # fairseq's classes have rules of their own
    ours = {id(entry[0] if isinstance(entry, tuple) else entry) for entry in fairseq_safe_globals()}
    return _added + [
        entry
        for entry in torch.serialization.get_safe_globals()
        if id(entry[0] if isinstance(entry, tuple) else entry) not in ours
    ]


def check_configuration(configuration: Any, name: str) -> None:
    """Raise RefusedCheckpoint where a configuration reads more than itself, or multiplies.

    Args:
        configuration: a dict, Namespace or object of omegaconf; None for none.
        name: of its file.
    """
    text = find_resolver(configuration)
    if text is not None:
        raise RefusedCheckpoint(
            f"{name}: refused, its configuration contains {text!r}, which reads something outside "
            "the checkpoint; allowed: references to other options, as in ${optimization.lr}"
        )
    if multiplies(configuration):
        raise RefusedCheckpoint(
            f"{name}: refused, its configuration has more than {MAX_VALUES:,} values when its "
            "references are resolved"
        )


def _refuse(what: str, file: CheckpointFile) -> NoReturn:
    """Raise RefusedCheckpoint for a file that contains `what`."""
    is_name = " " not in what  # of a class or function, which a plugin may add
    advice = (
        " if this one is yours, let the --user-dir call "
        f"fairseq_ext.compat.checkpoints.add_safe_globals({what})"
        if is_name
        else ""
    )
    reason = ", which is not among the classes that fairseq writes" if is_name else ""
    raise RefusedCheckpoint(
        f"{file_name(file)}: refused, it contains {what}{reason}; loading it could run code. Take "
        f"checkpoints from sources you trust only{';' if advice else ''}{advice}"
    ) from None
