"""Makes DATA: the commands of [data], once for the files of RAW that it is made of."""

import contextlib
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any, Iterator, Mapping

from fairseq_ext.compat.file_sums import file_sum

from . import UsageError
from .definition import Experiment
from .execution import STAMP, data_places, execute, placed
from .files import locked, read_json, write_json

LOG = "prepare.log"


def raw_files(experiment: Experiment, raw: Path) -> dict[str, Path]:
    """Return {name: file} of what DATA is made of; every file may be packed as .gz.

    Raises UsageError for one that is missing.
    """
    files = {}
    for name in experiment.raw:
        candidates = [raw / name, raw / f"{name}.gz"]
        files[name] = next((path for path in candidates if path.is_file()), Path())
        if files[name] == Path():
            raise UsageError(f"--raw {raw}: there is neither {name} nor {name}.gz")
    return files


def beside(folder: Path, ending: str) -> Path:
    """Return FOLDER.ENDING: what belongs to a folder that is replaced cannot be inside."""
    return folder.with_name(f"{folder.name}.{ending}")


def check_name(data: Path) -> None:
    """Raise UsageError where DATA is named by its place alone: it is to be moved."""
    if data.name in ("", ".."):
        raise UsageError(f"--data {data}: allowed: a folder with a name, such as data-bin/NAME")


def check_content(data: Path) -> None:
    """Raise UsageError where DATA is not what a preparation has made, or begun to make."""
    if data.exists() and not data.is_dir():
        raise UsageError(f"--data {data} is a file; allowed: a folder")
    is_made = any((data / name).is_file() for name in (STAMP, LOG))
    if data.exists() and any(data.iterdir()) and not is_made:
        raise UsageError(f"--data {data} is not empty; name another folder")


def is_up_to_date(data: Path, stamp: Mapping[str, Any], force: bool) -> bool:
    """True if DATA need not be made. Raises UsageError where it must not be replaced."""
    before = read_json(data / STAMP)
    if not before or before == stamp:
        return bool(before) and not force
    if not force:
        changed = [key for key in stamp if before.get(key) != stamp[key]]
        raise UsageError(
            f"--data {data} was made with other {' and '.join(changed)}; name another folder, or "
            "replace it with --force"
        )
    return False


def restore(folder: Path) -> None:
    """Move back the data that a kill within `replaced` has left beside their folder.

    Raises UsageError where what is there is somebody else's.
    """
    before = beside(folder, "before")
    if not before.exists():
        return
    if not (before / STAMP).is_file():
        raise UsageError(
            f"{before} is in the way of the data that are replaced, and has no {STAMP}; allowed: "
            "another --data, or another name for that folder"
        )
    if not (folder / STAMP).is_file():
        shutil.rmtree(folder, ignore_errors=True)
        os.replace(before, folder)
        print(f"{folder} is what it was before a preparation that was killed")


def remove(folder: Path) -> None:
    """Remove a folder, if it is there. What a kill leaves of it has another name."""
    if folder.exists():
        rest = tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent)
        os.replace(folder, rest)
        shutil.rmtree(rest)


@contextlib.contextmanager
def replaced(folder: Path) -> Iterator[None]:
    """Begin with an empty folder. After an error the data of before are there again, or nothing.

    After a kill it is `restore` that brings them back.
    """
    before = beside(folder, "before")
    if (folder / STAMP).is_file():
        remove(before)  # older than what is whole in the folder
        os.replace(folder, before)
    try:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        (folder / LOG).touch()  # by which what a kill leaves is known as ours
        yield
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        if before.exists():
            os.replace(before, folder)
        raise
    remove(before)


def prepare(experiment: Experiment, raw: Path, data: Path, workers: int, force: bool) -> None:
    """Make DATA, wholly or not at all; do nothing where it is up to date.

    Raises UsageError where it was made with other commands or files, unless `force` is set, and
    where the folder is somebody else's. The log of commands that failed is DATA.prepare.log.
    """
    check_name(data)
    inputs = {name: file_sum(path) for name, path in raw_files(experiment, raw).items()}
    stamp = {"commands": list(experiment.prepare), "raw": inputs}
    folder = data.resolve()  # what is replaced is not a link to it
    log = beside(folder, LOG)
    with locked(data, beside(folder, "lock")):
        check_content(data)
        restore(folder)
        if is_up_to_date(folder, stamp, force):
            print(f"{data} is up to date")
            return
        log.write_text("", encoding="utf-8")
        with replaced(folder):
            for command in experiment.prepare:
                line = placed(command, data_places(raw, data, workers))
                print(line, flush=True)
                execute(line, log)
            os.replace(log, folder / LOG)
            write_json(folder / STAMP, stamp)
    print(f"ready: {data}")
