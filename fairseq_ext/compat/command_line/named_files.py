"""Checks of options that name files and folders, before models and data are read."""

from __future__ import annotations

import os
from typing import Callable

from ..user_errors import OptionError, option_of
from .chosen_classes import Values
from .training_checks import is_training

# {option: what its file holds}. Each is declared where --arch or --bpe reads it.
FILES = {
    "encoder_embed_path": "a file of vectors of words",
    "decoder_embed_path": "a file of vectors of words",
    "ema_seed_model": "a checkpoint",
    "replace_unk": "a file of words and their translations",
    "bpe_codes": "a file of sub-words",
    "bpe_merges": "a file of sub-words",
    "bpe_vocab": "a file of sub-words",
    "bpe_vocab_file": "a file of sub-words",
    "gpt2_encoder_json": "a file of sub-words",
    "gpt2_vocab_bpe": "a file of sub-words",
    "sentencepiece_model": "a file of sub-words",
    "sentencepiece_model_path": "a file of sub-words",
}
# read by fairseq-train alone
FIRST_VALUES = ("encoder_embed_path", "decoder_embed_path", "ema_seed_model")
FOLDERS = ("save_dir", "tensorboard_logdir", "results_path")


def is_local(path: object) -> bool:
    """True for a path of this machine: neither an address nor a value that is still missing."""
    return isinstance(path, str) and path not in ("", "???") and "://" not in path


def _files_are_there(values: Values) -> None:
    """Raise OptionError for a file that is missing or a folder."""
    for name, content in FILES.items():
        path = values.get(name)
        if not is_local(path) or (name in FIRST_VALUES and not is_training(values)):
            continue
        if name == "ema_seed_model" and not values.get("store_ema"):
            continue  # does nothing
        if not os.path.isfile(str(path)):
            reason = "a folder" if os.path.isdir(str(path)) else "there is no such file"
            raise OptionError(f"{option_of(name, path)}: {reason}; allowed: {content}")


def _folders_may_be_made(values: Values) -> None:
    """Raise OptionError for a folder whose name, or that of a folder above, is a file's."""
    for name in FOLDERS:
        path = values.get(name)
        if not is_local(path) or (name == "save_dir" and values.get("no_save")):
            continue
        place = str(path)
        while place and not os.path.lexists(place):
            place = os.path.dirname(place)
        if place and not os.path.isdir(place):
            raise OptionError(f"{option_of(name, path)}: {place} is a file; allowed: a folder")


def _log_has_a_folder(values: Values) -> None:
    """Raise OptionError for a log that cannot be made."""
    path = values.get("log_file")
    if not is_local(path):
        return
    folder = os.path.dirname(str(path)) or "."
    if os.path.isdir(str(path)):
        raise OptionError(f"--log-file {path}: a folder; allowed: a file, new or not")
    if not os.path.isdir(folder):
        raise OptionError(
            f"--log-file {path}: there is no folder {folder}; allowed: one that exists"
        )


COMPARISONS: tuple[Callable[[Values], None], ...] = (
    _files_are_there,
    _folders_may_be_made,
    _log_has_a_folder,
)
