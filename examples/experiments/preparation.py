"""Makes DATA: the commands of [data], once for the files of RAW that it is made of."""

import contextlib
import os
import shutil
from pathlib import Path
from typing import Any, Iterator, Mapping

from . import UsageError
from .definition import Experiment
from .execution import STAMP, data_places, execute, placed
from .files import digest, locked, read_json, write_json


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


def check_replaceable(data: Path, stamp: Mapping[str, Any], force: bool) -> bool:
    """True if DATA is up to date. Raises UsageError where it must not be replaced."""
    if not data.exists() or not any(data.iterdir()):
        return False
    before = read_json(data / STAMP)
    if before == stamp:
        return not force
    if not before and not (data / "prepare.log").is_file():
        raise UsageError(f"--data {data} is not empty; name another folder")
    if before and not force:
        changed = [key for key in stamp if before.get(key) != stamp[key]]
        raise UsageError(
            f"--data {data} was made with other {' and '.join(changed)}; name another folder, or "
            "replace it with --force"
        )
    return False


@contextlib.contextmanager
def replaced(folder: Path) -> Iterator[None]:
    """Begin with an empty folder; after an error it is again what it was before."""
    before = folder.with_name(f"{folder.name}.before")
    shutil.rmtree(before, ignore_errors=True)
    if (folder / STAMP).is_file():
        os.replace(folder, before)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        yield
    except BaseException:
        if before.exists():
            shutil.rmtree(folder)
            os.replace(before, folder)
        raise
    shutil.rmtree(before, ignore_errors=True)


def prepare(experiment: Experiment, raw: Path, data: Path, workers: int, force: bool) -> None:
    """Make DATA, wholly or not at all; do nothing where it is up to date.

    Raises UsageError where it was made with other commands or files, unless `force` is set, and
    where the folder is somebody else's.
    """
    inputs = {name: digest(path) for name, path in raw_files(experiment, raw).items()}
    stamp = {"commands": list(experiment.prepare), "raw": inputs}
    with locked(data, data.with_name(f"{data.name}.lock")):  # beside DATA, which is replaced
        if check_replaceable(data, stamp, force):
            print(f"{data} is up to date")
            return
        with replaced(data):
            for command in experiment.prepare:
                line = placed(command, data_places(raw, data, workers))
                print(line, flush=True)
                execute(line, data / "prepare.log")
            write_json(data / STAMP, stamp)
    print(f"ready: {data}")
