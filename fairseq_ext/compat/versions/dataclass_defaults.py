"""Dataclass fields whose default has no hash, such as an instance of another dataclass.

`common: CommonConfig = CommonConfig()` is how fairseq 0.12.2, hydra-core 1.0 and plugins for them
nest their options. Python 3.11 refuses every default that has no hash, to catch shared mutable
defaults; until 3.10 it refused only list, dict and set.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import sys
from pathlib import Path
from typing import Any, Callable

from ..patch_registry import BEFORE, PatchedModule, patch, since

TOLERATED_PACKAGES = frozenset(("fairseq", "fairseq_cli", "hydra", "examples"))
# folders, or single files, of the plugins of this process and, as processes inherit it, of those
# that it starts: unpickling imports a plugin there before fairseq asks for its --user-dir
USER_DIRS_VARIABLE = "FAIRSEQ_EXT_USER_DIRS"
# this package, itself a plugin, names in its patches what it looks for in the sources of others
OWN = Path(__file__).resolve().parents[2]

_dataclasses: Any = dataclasses  # its private functions have no declaration


def has_python_310_rule(owner: type) -> bool:
    """True if a dataclass belongs to fairseq, hydra or a plugin, or derives from FairseqDataclass.

    A plugin is what lies in a --user-dir. All others are checked by the present rule.
    """
    if owner.__module__.partition(".")[0] in TOLERATED_PACKAGES:
        return True
    configs: Any = sys.modules.get("fairseq.dataclass.configs")
    base = getattr(configs, "FairseqDataclass", None)
    if base is not None and issubclass(owner, base):
        return True
    file = getattr(sys.modules.get(owner.__module__), "__file__", None)
    return bool(file) and is_in_user_dir(str(file))


def is_in_user_dir(file: str) -> bool:
    """True if a file is a plugin's, in a --user-dir or given as one."""
    path = os.path.realpath(file)
    return any(f"{path}{os.sep}".startswith(f"{place}{os.sep}") for place in noted_places())


def field_by_python_310_rule(
    present_rule: Callable[..., Any], owner: type, name: str, *args: Any
) -> Any:
    """Return the Field of a name of a dataclass as `dataclasses._get_field` made it until 3.10.

    The present check sees a stand-in that has a hash. No class is changed that others may use.

    Args:
        present_rule: `dataclasses._get_field` of this Python.
        owner, name, args: its arguments.
    """
    default = getattr(owner, name, None)
    value: Any = default.default if isinstance(default, dataclasses.Field) else default
    has_hash = value.__class__.__hash__ is not None
    if has_hash or isinstance(value, (list, dict, set)) or not has_python_310_rule(owner):
        return present_rule(owner, name, *args)
    if isinstance(default, dataclasses.Field):
        default.default = object()
        try:
            return present_rule(owner, name, *args)
        finally:
            default.default = value
    # an inherited default is not an attribute of the class itself, before and afterwards
    is_own = name in vars(owner)
    setattr(owner, name, object())
    try:
        field = present_rule(owner, name, *args)
    finally:
        if is_own:
            setattr(owner, name, value)
        else:
            delattr(owner, name)
    field.default = value
    return field


@patch(
    "fairseq",
    "hydra",
    because="Python 3.11 refuses dataclass instances as defaults: importing fairseq and plugins "
    "fails with 'mutable default ... use default_factory'",
    conditions=[since("python", 3, 11)],
    moment=BEFORE,
    for_older=True,
)
def dataclass_instances_as_defaults(module_name: str) -> None:
    """Check the dataclasses of fairseq, hydra and plugins by the rule of Python 3.10."""
    present_rule = _dataclasses._get_field
    if present_rule.__module__ != "dataclasses":  # the import of the other package did it
        return

    def get_field(owner: type, name: str, *args: Any) -> Any:
        return field_by_python_310_rule(present_rule, owner, name, *args)

    _dataclasses._get_field = get_field


@patch(
    "fairseq.utils",
    because="Python 3.11 refuses dataclass instances as defaults, in the files of a --user-dir too",
    conditions=[since("python", 3, 11)],
    for_older=True,
)
def user_dirs_are_noted(module: PatchedModule) -> None:
    """Note the folder of a --user-dir before its files are imported."""
    stock = module.import_user_module

    @functools.wraps(stock)
    def import_user_module(args: Any) -> None:
        folder = getattr(args, "user_dir", None)
        if folder is not None:
            note_place(place_of(folder, os.path.dirname(str(module.__file__))))
        stock(args)

    module.import_user_module = import_user_module


def place_of(user_dir: str, package: str) -> str:
    """Return the folder that fairseq imports for a --user-dir.

    Args:
        user_dir: its value, relative to the present folder or to fairseq's.
        package: the folder of fairseq.
    """
    places = (os.path.abspath(user_dir), os.path.join(package, user_dir))
    folders = [place for place in places if os.path.exists(place)]
    # fairseq looks beside its package last, and refuses what is nowhere
    return folders[0] if folders else os.path.join(package, "..", user_dir)


def noted_places() -> list[str]:
    """Return the folders and files of the plugins of this process and of those that began it."""
    return list(filter(None, os.environ.get(USER_DIRS_VARIABLE, "").split(os.pathsep)))


def sources_in(place: str) -> dict[Path, str]:
    """Return the text of each source file of a noted place; {} if it is this package."""
    path = Path(place)
    if path == OWN:
        return {}
    files = sorted(path.rglob("*.py")) if path.is_dir() else [path]
    return {
        file: file.read_text(encoding="utf-8", errors="replace")
        for file in files
        if file.is_file()  # not gone since it was imported
    }


def note_place(place: str) -> None:
    """Add a folder or file of a plugin to USER_DIRS_VARIABLE, as a path without links."""
    path, noted = os.path.realpath(place), noted_places()
    if path not in noted:
        os.environ[USER_DIRS_VARIABLE] = os.pathsep.join([*noted, path])
