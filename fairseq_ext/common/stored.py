"""Trained models that a run is given by an option: read as data, checked, named in every error."""

import os
import pickle
from typing import Any, Dict, NamedTuple

from fairseq import checkpoint_utils, utils
from fairseq.data import Dictionary
from fairseq.models import ARCH_MODEL_NAME_REGISTRY
from torch import Tensor


class Stored(NamedTuple):
    """What a checkpoint holds: the option that named it, its path, configurations, weights."""

    option: str
    path: str
    model: Any
    task: Any
    weights: Dict[str, Tensor]

    @property
    def architecture(self) -> str:
        """Name of the registered model, whatever the name of its sizes."""
        name = self.model._name
        return ARCH_MODEL_NAME_REGISTRY.get(name, name)

    def error(self, text: str) -> ValueError:
        return ValueError(f"{self.option} {self.path}: {text}")


def read_stored(option: str, path: str) -> Stored:
    """The checkpoint at ``path``, on the CPU; ValueError if there is none that can be read."""
    if not os.path.isfile(path):
        raise ValueError(f"{option} {path}: there is no such file")
    try:
        state = checkpoint_utils.load_checkpoint_to_cpu(path)
    except (OSError, EOFError, RuntimeError, pickle.UnpicklingError) as error:
        raise ValueError(f"{option} {path}: {error}") from error
    cfg = state["cfg"]
    return Stored(option, path, cfg.model, cfg.task, state["model"])


def check_symbols(stored: Stored, file: str, lang: str, dictionary: Dictionary) -> None:
    """Raise ValueError unless the model was trained with ``dictionary``, dict.LANG.txt of the run.

    Checkpoints hold no symbols. They are compared with ``file`` of the data folder that the
    checkpoint names, as long as it is there.
    """
    folders = utils.split_paths(stored.task.data or "")
    known = os.path.join(folders[0], file) if folders else ""
    if not os.path.isfile(known):
        return
    theirs = Dictionary.load(known).symbols
    for number, (own, other) in enumerate(zip(dictionary.symbols, theirs)):
        if own != other:
            raise stored.error(
                f"was trained with {known}, whose word {number} is {other!r}; in dict.{lang}.txt "
                f"of the run's data it is {own!r}"
            )
    if len(theirs) != len(dictionary):
        raise stored.error(
            f"was trained with {known}, which has {len(theirs)} words; dict.{lang}.txt of the "
            f"run's data has {len(dictionary)}"
        )
