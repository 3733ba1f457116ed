"""Read trained models that an option names, as data; every error names the option and the file."""

import os
import pickle
from argparse import Namespace
from typing import Any, Dict, Mapping, NamedTuple, Optional

from fairseq import checkpoint_utils, utils
from fairseq.data import Dictionary
from omegaconf import OmegaConf
from torch import Tensor

from ..compat.checkpoints.configurations import registered_model
from ..compat.checkpoints.dictionary_digests import digest, stored_digests
from ..compat.user_errors import reason_of

# the dictionary of a language model, which is of no language, and the name of its digest
OF_TEXT, SOURCE = "dict.txt", "source"
# options of tasks that search in validation, and their values where nothing is searched; tasks
# refuse --eval-args and --eval-wer-args without a score
WITHOUT_SCORES: Dict[str, Any] = {
    "eval_bleu": False,
    "eval_wer": False,
    "eval_wer_args": "{}",
    "eval_cider": False,
    "eval_args": "{}",
}
# what torch and pickle raise for files that are no checkpoints
UNREADABLE = (OSError, EOFError, RuntimeError, ValueError, pickle.UnpicklingError)


class Stored(NamedTuple):
    """The contents of a checkpoint.

    option, path: the option that named it, and its file. model, task: their configurations.
    weights: {name: parameter}. digests: {language or side: digest} of the training's dictionaries;
    checkpoints of versions that recorded none have none.
    """

    option: str
    path: str
    model: Any
    task: Any
    weights: Dict[str, Tensor]
    digests: Mapping[str, str]

    @property
    def architecture(self) -> Optional[str]:
        """Return the name of the registered model, not that of its sizes."""
        return registered_model(self.model)

    def error(self, text: str) -> ValueError:
        """Return an error that begins with the option and the file."""
        return ValueError(f"{self.option} {self.path}: {text}")


def stored_of(option: str, path: str, state: Mapping[str, Any]) -> Stored:
    """Return the contents of ``path``, which ``option`` named, as they were read there."""
    model, task = state["cfg"]["model"], state["cfg"]["task"]
    if isinstance(task, Namespace):  # of a task without a dataclass
        task = OmegaConf.create(vars(task), flags={"allow_objects": True})
    return Stored(option, path, model, task, state["model"], stored_digests(state))


def read_stored(option: str, path: str) -> Stored:
    """Return the checkpoint at ``path``, on the CPU; ValueError if it cannot be read."""
    if not os.path.isfile(path):
        raise ValueError(f"{option} {path}: there is no such file")
    try:
        state = checkpoint_utils.load_checkpoint_to_cpu(path)
    except UNREADABLE as error:
        raise ValueError(f"{option} {path}: {reason_of(error, path)}") from error
    return stored_of(option, path, state)


def check_symbols(stored: Stored, file: str, lang: str, dictionary: Dictionary) -> None:
    """Raise ValueError unless the model was trained with ``dictionary``, dict.LANG.txt of the run.

    It is compared by the digest that the checkpoint records, under ``lang`` or, of a language
    model, as its source. A checkpoint without digests is compared with ``file`` of the data folder
    that it names, as long as that is there.
    """
    name = lang if lang in stored.digests or file != OF_TEXT else SOURCE
    recorded = stored.digests.get(name)
    if recorded == digest(dictionary):
        return
    path = _trained_path(stored, file)
    # the folder may have been moved, or may hold other dictionaries by now
    if path is not None and (recorded is None or digest(Dictionary.load(path)) == recorded):
        _check_with_file(stored, path, lang, dictionary)
    elif recorded is not None:
        size = int(recorded.split(":")[0])
        other = "as many words, but not the same or in another order"
        raise stored.error(
            f"was trained with another dictionary of {lang} than dict.{lang}.txt of the run's "
            f"data: {other if size == len(dictionary) else f'{size} words, not {len(dictionary)}'}"
        )


def _trained_path(stored: Stored, file: str) -> Optional[str]:
    """Return the dictionary ``file`` in the data folder of the training, None if it is gone."""
    folders = utils.split_paths(stored.task.get("data") or "")
    path = os.path.join(folders[0], file) if folders else ""
    return path if os.path.isfile(path) else None


def _check_with_file(stored: Stored, path: str, lang: str, dictionary: Dictionary) -> None:
    """Raise ValueError, naming a word, unless ``dictionary`` has the symbols of the file."""
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
