"""The sub-commands of `fairseq-ext` that serve all systems, and what all sub-commands share.

The module of a sub-command has `add_arguments(parser)` and a function that takes the arguments and
returns the exit status; commands.py lists both with those of the systems, and
`fairseq_ext/__main__.py` imports the chosen module only.
Importing this module or commands.py imports neither torch nor fairseq.
"""

import argparse
import contextlib
import gzip
import io
import os
import secrets
from pathlib import Path
from typing import (
    Any,
    Dict,
    Iterable,
    Iterator,
    List,
    Mapping,
    Optional,
    Sequence,
    TextIO,
    TypeVar,
    Union,
)

from ..compat.atomic_files import (
    flush,
    names_output,
    open_for_torch,
    removed_at_the_end,
    signals_wait,
)

PathName = TypeVar("PathName", bound=Union[str, Path])


class UsageError(Exception):
    """The user asked for something impossible; the message names option, value, what is allowed."""


class AddValues(argparse.Action):
    """Action of an option with several values: repeated, it has those of all places.

    argparse alone keeps the last place, and "extend" the default beside what is given.
    """

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Union[str, Sequence[Any], None],
        option_string: Optional[str] = None,
    ) -> None:
        """Add the values to those before, or put them in the place of the default."""
        before = getattr(namespace, self.dest)
        added = list(values or ())
        setattr(namespace, self.dest, added if before is self.default else [*before, *added])


def model_paths(metavar: str, text: str) -> List[str]:
    """Return the files or folders of a model: PATH, or FILE:FILE for an ensemble.

    Raises UsageError, beginning with ``metavar``, where one is missing.
    """
    # a name may hold a colon
    paths = [text] if Path(text).exists() else text.split(":")
    for path in paths:
        if not Path(path).exists():
            raise UsageError(f"{metavar} {path}: there is no such folder or file")
    return paths


def check_apart(output: Union[str, Path], inputs: Iterable[Union[str, Path]]) -> None:
    """Raise UsageError where `output` is one of the files that are read, which would be lost."""
    for path in inputs:
        if Path(output).resolve() == Path(path).resolve():
            raise UsageError(
                f"--output: {output} is read as well and would be lost; allowed: another file"
            )


def check_new(output: Union[str, Path], force: bool) -> None:
    """Raise UsageError where `output` exists, unless --force is there to replace it.

    The empty text names no file: it is refused in any case.
    """
    if not str(output):
        raise UsageError("--output '': allowed: the name of a file")
    if Path(output).exists() and not force:
        raise UsageError(f"--output {output} exists; give another name, or --force to replace it")


def check_once(option: str, paths: Iterable[Union[str, Path]]) -> None:
    """Raise UsageError where an option lists a file twice, which would count twice in a mean."""
    listed: Dict[Path, str] = {}  # {file: its first name}
    for path in paths:
        file = Path(path).resolve()
        if file in listed:
            also = "" if listed[file] == str(path) else f", as {listed[file]}"
            raise UsageError(f"{option} {path}: listed twice{also}; allowed: each file once")
        listed[file] = str(path)


def make_folder(folder: Path) -> None:
    """Make a folder that files are written to; UsageError where that is not possible."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:  # a file has the name, or the folder above is read-only
        raise UsageError(f"cannot write to {folder}: {error.filename}: {error.strerror}") from error


@contextlib.contextmanager
def atomic_path(output: Union[str, Path], flushes: bool = True) -> Iterator[Path]:
    """Yield a temporary file beside `output` that becomes `output` when the block ends well.

    An error inside the block, or a signal that ends the process, leaves an existing `output` as it
    was and removes the temporary file.
    flushes: to the disk, so that a power failure leaves it as well. Without it, thousands of small
    files take seconds instead of minutes.
    Of a symbolic link the file behind it is replaced. Raises UsageError when the folder of `output`
    does not exist, and when `output` is one, or a device or a pipe.
    """
    if Path(output).exists() and not Path(output).is_file():
        what = "a folder" if Path(output).is_dir() else "no regular file"
        raise UsageError(f"cannot write {output}: it is {what}")
    path = Path(os.path.realpath(output))
    if not path.parent.is_dir():
        raise UsageError(f"cannot write {output}: {path.parent} is not a folder")
    # in the same folder, as a rename is one step within a file system only;
    # the same suffix, by which matplotlib chooses the format
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}{path.suffix}")
    with removed_at_the_end(str(partial)), names_output(str(output), str(partial)):
        partial.touch(exist_ok=False)  # not mkstemp, whose files nobody else may read
        yield partial
        if flushes:
            # before the rename: after a power failure the name must not lead to an empty file
            flush(str(partial))
        os.replace(partial, path)


@contextlib.contextmanager
def open_text(path: Union[str, Path]) -> Iterator[TextIO]:
    """Open a text file (UTF-8) to write; packed where its name ends in .gz, as it is read.

    The same text makes the same bytes: a packed file holds neither its name nor the time.
    """
    with contextlib.ExitStack() as stack:
        stream: Any = stack.enter_context(open(path, "wb"))
        if str(path).endswith(".gz"):
            packed = gzip.GzipFile(filename="", mode="wb", fileobj=stream, mtime=0)
            stream = stack.enter_context(packed)
        yield stack.enter_context(io.TextIOWrapper(stream, encoding="utf-8", newline="\n"))


def write_texts(texts: Mapping[PathName, Iterable[str]]) -> None:
    """Write {file: its lines, each with its end}, all files or none, as `atomic_path` does.

    OSError names the file that cannot be written.
    """
    with contextlib.ExitStack() as stack:
        partials = {path: stack.enter_context(atomic_path(path)) for path in texts}
        for path, partial in partials.items():
            with names_output(str(path), str(partial)):
                with open_text(partial) as stream:
                    stream.writelines(texts[path])
                flush(str(partial))  # each is on the disk before the first gets its name
        with signals_wait():  # the files belong together: line N of the sides of a corpus
            stack.close()


def save_atomically(state: Any, output: Union[str, Path]) -> None:
    """Write a checkpoint as `atomic_path` does; OSError that names it where it cannot be written.

    torch.save alone hides why.
    """
    import torch

    with atomic_path(output) as partial, open_for_torch(str(partial)) as file:
        torch.save(state, file)
