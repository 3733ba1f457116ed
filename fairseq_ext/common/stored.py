"""Read trained models that an option names, as data; every error names the option and the file."""

import os
import pickle
from typing import Any, Dict, NamedTuple

from fairseq import checkpoint_utils, utils
from fairseq.data import Dictionary
from fairseq.models import ARCH_MODEL_NAME_REGISTRY
from torch import Tensor


class Stored(NamedTuple):
    """The contents of a checkpoint.

    option, path: the option that named it, and its file. model, task: their configurations.
    weights: {name: parameter}.
    """

    option: str
    path: str
    model: Any
    task: Any
    weights: Dict[str, Tensor]

    @property
    def architecture(self) -> str:
        """Return the name of the registered model, not that of its sizes."""
        name = self.model._name
        return ARCH_MODEL_NAME_REGISTRY.get(name, name)

    def error(self, text: str) -> ValueError:
        """Return an error that begins with the option and the file."""
        return ValueError(f"{self.option} {self.path}: {text}")


def read_stored(option: str, path: str) -> Stored:
    """Return the checkpoint at ``path``, on the CPU; ValueError if it cannot be read."""
    if not os.path.isfile(path):
        raise ValueError(f"{option} {path}: there is no such file")
    # what torch and pickle raise for files that are no checkpoints
    try:
        state = checkpoint_utils.load_checkpoint_to_cpu(path)
    except (OSError, EOFError, RuntimeError, ValueError, pickle.UnpicklingError) as error:
        raise ValueError(f"{option} {path}: {str(error).removeprefix(f'{path}: ')}") from error
    cfg = state["cfg"]
    return Stored(option, path, cfg.model, cfg.task, state["model"])


def check_symbols(stored: Stored, file: str, lang: str, dictionary: Dictionary) -> None:
    """Raise ValueError unless the model was trained with ``dictionary``, dict.LANG.txt of the run.

    Checkpoints hold no symbols. They are compared with ``file`` of the data folder that the
    checkpoint names, as long as it is there.
    """
    # a run may have been moved: without its dictionary nothing can be compared
    folders = utils.split_paths(stored.task.data or "")
    path = os.path.join(folders[0], file) if folders else ""
    if not os.path.isfile(path):
        return
    trained = Dictionary.load(path).symbols
    for index, (symbol, trained_symbol) in enumerate(zip(dictionary.symbols, trained)):
        if symbol != trained_symbol:
            raise stored.error(
                f"was trained with {path}, whose word {index} is {trained_symbol!r}; in "
                f"dict.{lang}.txt of the run's data it is {symbol!r}"
            )
    if len(trained) != len(dictionary):
        raise stored.error(
            f"was trained with {path}, which has {len(trained)} words; dict.{lang}.txt of the "
            f"run's data has {len(dictionary)}"
        )
