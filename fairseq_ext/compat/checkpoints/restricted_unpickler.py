"""An unpickler for checkpoints: it makes values of listed classes and calls listed functions.

A pickle is a program. This one names classes and functions by text (GLOBAL), calls them (REDUCE,
NEWOBJ) and sets the state of objects (BUILD). A list of names alone is not enough: functions on it
have arguments that do harm, and BUILD changes whatever lies on the stack. `pickle_rules` says for
each entry what it may be called with. Opcodes that torch does not write are refused.

It takes the place of torch's own unpickler for `weights_only=True`, which differs by version.
"""

from __future__ import annotations

import collections
import pickle
import struct
from _compat_pickle import IMPORT_MAPPING, NAME_MAPPING
from types import ModuleType
from typing import Any, BinaryIO, Callable, ClassVar, Mapping

from .interpolations import find_resolver
from .pickle_rules import (
    ArgumentRule,
    argument_rules,
    check_array_state,
    check_dtype_state,
    check_model_state,
    is_key,
)
from .safe_globals import SafeGlobals

REFUSED_OPCODES = {
    pickle.PERSID: "a persistent id in text form",
    pickle.INST: "an object of the opcode INST",
    pickle.OBJ: "an object of the opcode OBJ",
    pickle.EXT1: "an extension of copyreg",
    pickle.EXT2: "an extension of copyreg",
    pickle.EXT4: "an extension of copyreg",
    pickle.NEWOBJ_EX: "an object of the opcode NEWOBJ_EX",
    pickle.BYTEARRAY8: "a bytearray of the opcode BYTEARRAY8",
    pickle.NEXT_BUFFER: "a buffer outside the pickle",
    pickle.READONLY_BUFFER: "a buffer outside the pickle",
}
# what bytes that are no pickle end in, beside the errors of pickle
DAMAGE = (TypeError, ValueError, AttributeError, AssertionError, IndexError, KeyError, struct.error)
MAPPINGS = (dict, collections.OrderedDict, collections.Counter, collections.defaultdict)


class Refusal(pickle.UnpicklingError):
    """What a pickle contains that is not allowed, in words; the message names no file."""


class GlobalTable:
    """What a pickle may name, and what it may do with it.

    Args:
        entries: the classes and functions, as in `safe_globals`.
        added: those of plugins, which may be called with any arguments.
        torch: the module, for the rules of its functions and the widths of its types.

    Attributes:
        by_name: {"module.name": class or function}.
        rules: {id of a class or function: rule of its arguments}; without one, it is called
            without arguments only.
    """

    def __init__(self, entries: SafeGlobals, added: SafeGlobals, torch: ModuleType) -> None:
        self.by_name: dict[str, Any] = {}
        for entry in (*entries, *added):
            if isinstance(entry, tuple):
                self.by_name[entry[1]] = entry[0]  # the name that older files have
            else:
                self.by_name[f"{entry.__module__}.{entry.__qualname__}"] = entry
        # by identity: not every value of the list is hashable, and a comparison may call it
        self.listed = {id(value) for value in self.by_name.values()}
        self.rules: dict[int, ArgumentRule] = {}
        for entry in added:
            self.rules[id(entry[0] if isinstance(entry, tuple) else entry)] = _any_arguments
        self.rules.update(argument_rules(torch))
        self.torch = torch

    def check_call(self, function: Any, arguments: Any) -> None:
        """Raise Refusal unless a pickle may call `function` with these arguments."""
        if id(function) not in self.listed:
            raise Refusal(f"a call of an object of type {type(function).__name__}")
        if type(arguments) is not tuple:
            raise Refusal("a call whose arguments are no tuple")
        rule = self.rules.get(id(function), _no_arguments)
        if not rule(arguments):
            raise Refusal(f"a call of {_name(function)} with arguments that fairseq does not write")

    def check_state(self, instance: Any) -> None:
        """Raise Refusal unless a pickle may set the state of this object."""
        if isinstance(instance, type):
            raise Refusal(f"a state for the class {_name(instance)} itself")
        if id(type(instance)) not in self.listed:
            raise Refusal(f"a state for an object of type {_name(type(instance))}")


def _any_arguments(arguments: tuple[Any, ...]) -> bool:
    """Return True: the plugin that added the class answers for it."""
    return True


def _no_arguments(arguments: tuple[Any, ...]) -> bool:
    """Return True if there are none."""
    return not arguments


def _name(value: Any) -> str:
    """Return the full name of a class or function."""
    module = getattr(value, "__module__", None) or type(value).__module__
    return f"{module}.{getattr(value, '__qualname__', type(value).__qualname__)}"


def unpickler_for(
    table: GlobalTable, bounds: Mapping[str, int] | None, limit: int | None
) -> tuple[type[pickle._Unpickler], list[Refusal]]:
    """Return an unpickler class, and the list of what it refused.

    torch replaces an error of the unpickler by one of its own: the list keeps what happened.

    Args:
        table: what a pickle may name.
        bounds: {name of a storage: its bytes in the file}; None where the file has no such table.
        limit: the bytes of the file, which no storage exceeds; None if unknown.
    """
    refused: list[Refusal] = []

    class Unpickler(_RestrictedUnpickler):
        def load(self) -> Any:
            """Return the object of the pickle."""
            try:
                return super().load()
            except Refusal as refusal:
                refused.append(refusal)
                raise
            except (MemoryError, OverflowError):
                refused.append(Refusal("more than fits into the memory"))
                raise refused[0] from None
            except DAMAGE as error:
                raise pickle.UnpicklingError(f"{type(error).__name__}: {error}") from error

    Unpickler.table, Unpickler.bounds, Unpickler.limit = table, bounds, limit
    return Unpickler, refused


class _RestrictedUnpickler(pickle._Unpickler):
    """The unpickler of the standard library in Python, each opcode that acts being checked."""

    table: GlobalTable
    bounds: Mapping[str, int] | None
    limit: int | None
    stack: list[Any]
    dispatch: ClassVar[dict[int, Callable[[Any], None]]] = dict(pickle._Unpickler.dispatch)

    def __init__(self, file: BinaryIO, *, encoding: str = "ASCII", **_options: Any) -> None:
        super().__init__(file, encoding=encoding)

    def find_class(self, module_name: str, name: str) -> Any:
        """Return the entry of this name; Refusal, with the name, without one."""
        # torch writes protocol 2, which has the names of Python 2
        module_name, name = NAME_MAPPING.get((module_name, name), (module_name, name))
        full_name = f"{IMPORT_MAPPING.get(module_name, module_name)}.{name}"
        if full_name not in self.table.by_name:
            raise Refusal(full_name)
        return self.table.by_name[full_name]

    def get_extension(self, code: int) -> None:
        """Raise Refusal: the registry of copyreg may name anything."""
        raise Refusal(REFUSED_OPCODES[pickle.EXT1])

    def _reduce(self) -> None:
        arguments = self.stack.pop()
        function = self.stack[-1]
        self.table.check_call(function, arguments)
        self.stack[-1] = function(*arguments)

    def _newobj(self) -> None:
        arguments = self.stack.pop()
        created = self.stack.pop()
        if not isinstance(created, type):
            raise Refusal(f"an object of {_name(created)}, which is no class")
        self.table.check_call(created, arguments)
        self.stack.append(created.__new__(created, *arguments))

    def _build(self) -> None:
        state = self.stack.pop()
        instance = self.stack[-1]
        self.table.check_state(instance)
        numpy = __import__("numpy")
        if isinstance(instance, numpy.dtype):
            reason = check_dtype_state(instance, state)
        elif isinstance(instance, numpy.ndarray):
            reason = check_array_state(state)
        else:
            reason = self._check_attributes(instance, state)
        if reason is not None:
            raise Refusal(reason)
        # of the class: an attribute of the instance comes from the file
        if hasattr(type(instance), "__setstate__"):
            instance.__setstate__(state)
        elif state:
            instance.__dict__.update(state)

    def _check_attributes(self, instance: Any, state: Any) -> str | None:
        """Return what is wrong with the state of an object of a class, in words."""
        kind = type(instance)
        if isinstance(state, dict):
            for attribute in state:
                if type(attribute) is not str or attribute.startswith("__"):
                    return f"the attribute {attribute!r} of an object of type {_name(kind)}"
        elif not (state is None or hasattr(kind, "__setstate__")):
            return f"a state that is no dict of an object of type {_name(kind)}"
        if kind.__module__ == "sentencepiece":
            return check_model_state(state)
        if kind.__module__.startswith("omegaconf."):
            text = find_resolver(state)
            if text is not None:
                return f"the value {text!r}, which a resolver of omegaconf would read elsewhere"
        return None

    def _append(self) -> None:
        item = self.stack.pop()
        self._container("list", list).append(item)

    def _appends(self) -> None:
        items = self.pop_mark()  # type: ignore[attr-defined]
        self._container("list", list).extend(items)

    def _additems(self) -> None:
        items = self.pop_mark()  # type: ignore[attr-defined]
        for item in items:
            _check_key(item)
        self._container("set", set).update(items)

    def _setitem(self) -> None:
        value, key = self.stack.pop(), self.stack.pop()
        _check_key(key)
        self._container("dict", *MAPPINGS)[key] = value

    def _setitems(self) -> None:
        items = self.pop_mark()  # type: ignore[attr-defined]
        mapping = self._container("dict", *MAPPINGS)
        for key, value in zip(items[::2], items[1::2]):
            _check_key(key)
            mapping[key] = value

    def _dict(self) -> None:
        items = self.pop_mark()  # type: ignore[attr-defined]
        for key in items[::2]:
            _check_key(key)
        self.stack.append(dict(zip(items[::2], items[1::2])))

    def _frozenset(self) -> None:
        items = self.pop_mark()  # type: ignore[attr-defined]
        for item in items:
            _check_key(item)
        self.stack.append(frozenset(items))

    def _container(self, kind: str, *classes: type) -> Any:
        """Return what is to be filled; Refusal unless it is of one of these very classes."""
        if type(self.stack[-1]) not in classes:
            raise Refusal(f"items for a {kind} given to {_name(type(self.stack[-1]))}")
        return self.stack[-1]

    def _binpersid(self) -> None:
        identifier = self.stack.pop()
        self._check_storage(identifier)
        self.stack.append(self.persistent_load(identifier))

    def _check_storage(self, identifier: Any) -> None:
        """Raise Refusal unless a persistent id is that of a storage inside the file.

        torch knows ids of modules too: it compares the source of their class with one in the file,
        and writes the difference into a file.
        """
        is_tuple = type(identifier) is tuple and len(identifier) in (5, 6)
        if not is_tuple or identifier[0] not in ("storage", b"storage"):
            kind = identifier[0] if type(identifier) is tuple and identifier else identifier
            raise Refusal(f"the persistent id {str(kind)[:40]!r}; allowed: storages")
        storage_type, key, _, count = identifier[1:5]
        dtype = getattr(storage_type, "dtype", None)
        torch = self.table.torch
        # a storage without a type counts bytes
        width = torch._utils._element_size(dtype) if isinstance(dtype, torch.dtype) else 1
        if type(count) is not int or count < 0:
            raise Refusal("a storage without a size")
        stored = self.limit if self.bounds is None else self.bounds.get(str(key), 0)
        if stored is not None and count * width > stored:
            raise Refusal(f"a storage of {count * width:,} bytes, of which the file has {stored:,}")


def _check_key(key: Any) -> None:
    """Raise Refusal for a key whose hash is not computed in a few steps."""
    if not is_key(key):
        raise Refusal(f"a key of type {_name(type(key))}")


def _refusing(reason: str) -> Callable[[Any], None]:
    """Return what is done at an opcode that is refused."""

    def refuse(self: Any) -> None:
        raise Refusal(reason)

    return refuse


for _opcode, _reason in REFUSED_OPCODES.items():
    _RestrictedUnpickler.dispatch[_opcode[0]] = _refusing(_reason)
for _opcode, _method in (
    (pickle.REDUCE, _RestrictedUnpickler._reduce),
    (pickle.NEWOBJ, _RestrictedUnpickler._newobj),
    (pickle.BUILD, _RestrictedUnpickler._build),
    (pickle.APPEND, _RestrictedUnpickler._append),
    (pickle.APPENDS, _RestrictedUnpickler._appends),
    (pickle.ADDITEMS, _RestrictedUnpickler._additems),
    (pickle.SETITEM, _RestrictedUnpickler._setitem),
    (pickle.SETITEMS, _RestrictedUnpickler._setitems),
    (pickle.DICT, _RestrictedUnpickler._dict),
    (pickle.FROZENSET, _RestrictedUnpickler._frozenset),
    (pickle.BINPERSID, _RestrictedUnpickler._binpersid),
):
    _RestrictedUnpickler.dispatch[_opcode[0]] = _method
