"""Where the dictionaries of a checkpoint are."""

import os
from pathlib import Path
from typing import Any, List, Mapping, Optional, Union

from fairseq import utils

from ..compat.checkpoints.configurations import options_of

PathLike = Union[str, "os.PathLike[str]"]
# what a data folder holds, by which it is known
MARKS = ("dict*.txt", "config.yaml")


def has_data(folder: Path) -> bool:
    """True if the folder holds a dictionary, or the settings of recordings."""
    return any(True for mark in MARKS for _ in folder.glob(mark))


def data_folder(checkpoint: Path, task: Any, data: Optional[PathLike]) -> Path:
    """Return the folder of the dictionaries.

    Args:
        checkpoint: the file.
        task: the options of its task.
        data: what the caller says; without it the folder of the checkpoint is looked at, then that
            of the training, from here and from where the checkpoint is.

    Raises FileNotFoundError, with the folders, where none has dictionaries, and ValueError for one
    that fairseq would read others for.
    """
    folder = _data_folder(checkpoint, task, data)
    if len(utils.split_paths(str(folder))) > 1:
        raise ValueError(
            f"data {str(folder)!r}: fairseq takes a path with a colon for several; allowed: a "
            "folder without one"
        )
    return folder


def _data_folder(checkpoint: Path, task: Any, data: Optional[PathLike]) -> Path:
    """Return the folder of the dictionaries, whatever its name."""
    if data is not None:
        folder = Path(data)
        if not folder.is_dir():
            raise FileNotFoundError(f"data {str(folder)!r}: there is no such folder")
        if not has_data(folder):
            raise FileNotFoundError(
                f"data {str(folder)!r}: it has no dict.txt, dict.LANGUAGE.txt or config.yaml; "
                "allowed: the data folder of the training"
            )
        return folder
    candidates = candidate_folders(checkpoint, options_of(task))
    for folder in candidates:
        if folder.is_dir() and has_data(folder):
            return folder
    places = ", ".join(str(folder) for folder in candidates)
    raise FileNotFoundError(
        f"{checkpoint}: its dictionaries are in none of {places}; allowed: name their folder, "
        f"load({str(checkpoint)!r}, DATA)"
    )


def candidate_folders(checkpoint: Path, task: Mapping[str, Any]) -> List[Path]:
    """Return where dictionaries may be, the most likely folder first."""
    folders = [checkpoint.parent]
    stored = task.get("data")
    for name in utils.split_paths(stored)[:1] if stored else ():
        folders.append(Path(name))
        if not Path(name).is_absolute():
            # trained in another working folder, of which the checkpoint's is a part
            folders += [checkpoint.parent / name, checkpoint.parent.parent / name]
    return list(dict.fromkeys(folders))


def subword_folders(checkpoint: Path, data: Path) -> List[Path]:
    """Return where sub-word models may be: with the dictionaries, the checkpoint, or above them."""
    folders = [data, checkpoint.parent, data.parent, checkpoint.parent.parent]
    return list(dict.fromkeys(folder for folder in folders if folder.is_dir()))
