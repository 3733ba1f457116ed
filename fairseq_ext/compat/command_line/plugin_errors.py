"""A --user-dir that cannot be imported: the error names it, the file, the line and the cause."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import traceback
from types import ModuleType
from typing import Iterator

from ..user_errors import OPTIONAL_PACKAGES, PluginFault

logger = logging.getLogger(__name__)

# what fairseq imports of a folder without __init__.py
AUTOMATIC_FOLDERS = ("tasks", "models")


@contextlib.contextmanager
def errors_of_plugin(user_dir: str, place: str, memo: set[str]) -> Iterator[None]:
    """Note in an exception of the block, which imports a --user-dir, what a command prints.

    The exception itself goes on as it is. A second import of the plugin, once it is mended, is a
    new attempt.

    Args:
        user_dir: the value of the option.
        place: its folder or file. Raises FileNotFoundError without it.
        memo: the folders that fairseq does not import again.
    """
    name = os.path.basename(place).removesuffix(".py")
    present = sys.modules.get(name)
    if not os.path.exists(place):
        raise FileNotFoundError(f"--user-dir {user_dir}: there is no such file or folder")
    try:
        yield
    except Exception as error:
        memo.discard(os.path.abspath(place))
        if not hasattr(error, "plugin_fault"):
            is_inside = _frames_inside(error, place) or _is_syntax_error_inside(error, place)
            if present is not None and not is_inside:
                raise another_module(user_dir, present) from error
            error.plugin_fault = plugin_fault(user_dir, place, error)  # type: ignore[attr-defined]
        if present is None:
            sys.modules.pop(name, None)  # its folders `tasks` and `models` are imported with it
        raise
    if present is None and _imports_nothing(place):
        logger.warning(
            f"--user-dir {user_dir}: nothing is imported: {place} has no __init__.py and neither "
            f"a folder {AUTOMATIC_FOLDERS[0]} nor {AUTOMATIC_FOLDERS[1]}"
        )


def another_module(user_dir: str, present: ModuleType) -> ImportError:
    """Return the error for a plugin with the name of a module that is imported already."""
    file = getattr(present, "__file__", None) or ", ".join(getattr(present, "__path__", ()))
    message = (
        f"--user-dir {user_dir} is not allowed: there is another module {present.__name__}, "
        f"{file or 'of Python itself'}; allowed: a file or folder with a name of its own"
    )
    error = ImportError(message)
    error.plugin_fault = PluginFault(message)  # type: ignore[attr-defined]
    return error


def plugin_fault(user_dir: str, place: str, error: Exception) -> PluginFault:
    """Return what a command prints for an exception that the import of a plugin raised."""
    cause = f"{type(error).__name__}: {error}"
    if isinstance(error, SyntaxError):
        cause = f"{type(error).__name__}: {error.msg}"
        if _is_syntax_error_inside(error, place):
            code = (error.text or "").strip()
            at = f"{error.filename}, line {error.lineno}: {cause}{f': {code}' if code else ''}"
            return PluginFault(f"--user-dir {user_dir} cannot be imported: {at}")
    if isinstance(error, ModuleNotFoundError) and error.name in OPTIONAL_PACKAGES:
        cause += f"; pip install {error.name}"
    frames = _frames_inside(error, place)
    if not frames:
        file_name = os.path.basename(place).removesuffix(".py")
        is_name = file_name.isidentifier() and (os.path.isdir(place) or place.endswith(".py"))
        allowed = "" if is_name else "; allowed: a folder, or a file .py, with the name of a module"
        return PluginFault(f"--user-dir {user_dir} cannot be imported: {cause}{allowed}")
    at = f"{frames[-1].filename}, line {frames[-1].lineno}"
    # the import of what is not there is known by its line alone
    trace = "" if type(error) is ModuleNotFoundError else _trace_from_plugin(error, place)
    return PluginFault(f"--user-dir {user_dir} cannot be imported: {at}: {cause}", trace)


def _frames_inside(error: BaseException, place: str) -> list[traceback.FrameSummary]:
    """Return the frames of a traceback that lie in the files of a plugin."""
    frames = traceback.extract_tb(error.__traceback__)
    return [frame for frame in frames if _is_inside(frame.filename, place)]


def _is_syntax_error_inside(error: BaseException, place: str) -> bool:
    """True if a file of the plugin is no Python."""
    return isinstance(error, SyntaxError) and _is_inside(error.filename or "", place)


def _is_inside(file: str, place: str) -> bool:
    """True if a file is a plugin's file or lies in its folder."""
    return f"{os.path.realpath(file)}{os.sep}".startswith(f"{os.path.realpath(place)}{os.sep}")


def _trace_from_plugin(error: Exception, place: str) -> str:
    """Return the traceback without the lines that lead to the plugin, and without importlib's."""
    whole = traceback.TracebackException(type(error), error, error.__traceback__)
    inside = [_is_inside(frame.filename, place) for frame in whole.stack]
    frames = whole.stack[inside.index(True) :]
    whole.stack = traceback.StackSummary.from_list(
        [frame for frame in frames if not frame.filename.startswith("<frozen importlib")]
    )
    return "".join(whole.format()).rstrip()


def _imports_nothing(place: str) -> bool:
    """True if a folder has nothing that fairseq imports by itself."""
    names = ("__init__.py", *AUTOMATIC_FOLDERS)
    return os.path.isdir(place) and not any(
        os.path.exists(os.path.join(place, name)) for name in names
    )
