"""What the files of a model hold: checkpoints, an ensemble of them, or a packed folder."""

import os
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Union

from fairseq import checkpoint_utils
from fairseq.models import (
    ARCH_MODEL_REGISTRY,
    FairseqEncoderDecoderModel,
    FairseqLanguageModel,
    FairseqMultiModel,
)
from omegaconf import DictConfig, open_dict

from ..compat.checkpoints.configurations import chosen_name, options_of
from ..compat.checkpoints.dictionary_digests import stored_digests, trained_languages
from ..compat.checkpoints.refusals import check_configuration
from .packed import is_packed, read_packed
from .places import PathLike
from .subword_models import SubwordModels

SIDES = ("source_lang", "target_lang")
SUPPORTED = (FairseqEncoderDecoderModel, FairseqLanguageModel, FairseqMultiModel)


class StoredModel(NamedTuple):
    """What a file holds of one model: fairseq's checkpoint as a dict, and its configuration."""

    path: Path
    state: Dict[str, Any]
    cfg: DictConfig


class ModelSource(NamedTuple):
    """What is loaded: checkpoints, and what a packed folder says beside them."""

    stored: List[StoredModel]
    folder: Optional[Path] = None
    subwords: Optional[SubwordModels] = None
    tokenizer: Optional[str] = None


def read_source(checkpoint: Union[PathLike, Sequence[PathLike]]) -> ModelSource:
    """Return what a checkpoint, the files of an ensemble, or one packed folder hold."""
    paths = [Path(name) for name in _listed(checkpoint)]
    if not paths:
        raise ValueError("checkpoint: an empty list; allowed: at least one file")
    folders = [path for path in paths if is_packed(path)]
    if folders and len(paths) > 1:
        raise ValueError(
            f"{folders[0]}: a packed folder is loaded alone; allowed: pack the ensemble"
        )
    if folders:
        packed = read_packed(folders[0])
        stored = [StoredModel(file, state, state["cfg"]) for file, state in packed.states]
        return ModelSource(stored, packed.folder, packed.subwords, packed.tokenizer)
    stored = [read_checkpoint(path) for path in paths]
    tokenizer = chosen_name(stored[0].cfg.get("tokenizer"), "tokenizer")
    return ModelSource(stored, tokenizer=tokenizer)


def _listed(checkpoint: Union[PathLike, Sequence[PathLike]]) -> Sequence[PathLike]:
    """Return the files as a list; one path is a list of one. TypeError for what is no path."""
    paths: Sequence[Any] = checkpoint if isinstance(checkpoint, (list, tuple)) else [checkpoint]
    for path in paths:
        if not isinstance(path, (str, os.PathLike)):
            raise TypeError(f"checkpoint {path!r}: allowed: a path, or a list of paths")
    return paths


def read_checkpoint(path: Path) -> StoredModel:
    """Return what a checkpoint holds, on the CPU; an error names the file and what is wrong."""
    if path.is_dir():
        files = ", ".join(sorted(file.name for file in path.glob("*.pt"))) or "none in this folder"
        raise FileNotFoundError(
            f"{path}: a folder without manifest.json; allowed: a folder written by fairseq-ext "
            f"pack, or a checkpoint file ({files})"
        )
    if not path.is_file():
        raise FileNotFoundError(f"{path}: there is no such checkpoint")
    state = checkpoint_utils.load_checkpoint_to_cpu(str(path))
    check_configuration(str(path), state)
    # of files from before fairseq 0.10: it has made "cfg" of them, but would use them again
    state["args"] = None
    entry = StoredModel(path, state, state["cfg"])
    name_languages(entry, trained_languages(entry.cfg.task, stored_digests(state)))
    return entry


def name_languages(entry: StoredModel, languages: Sequence[Optional[str]]) -> None:
    """Name the source and the target language in the options of a model, unless it names them.

    A training without -s and -t takes them from the names in its data folder.
    """
    options = options_of(entry.cfg.task)
    if "source_lang" not in options or "lang_pairs" in options or None in languages:
        return
    with open_dict(entry.cfg):
        for side, language in zip(SIDES, languages):
            options[side] = options[side] or language


def check_supported(entry: StoredModel) -> None:
    """Raise ValueError for a model of fairseq that neither translates nor predicts the next word.

    It would not be asked what it was trained for. Our models and those of other plugins pass.
    """
    name = chosen_name(entry.cfg.model, "model")
    entry_class = ARCH_MODEL_REGISTRY.get(name)
    if entry_class is None or not entry_class.__module__.startswith("fairseq."):
        return
    if not issubclass(entry_class, SUPPORTED):
        task = chosen_name(entry.cfg.task, "task")
        raise ValueError(
            f"{entry.path}: a {name} of the task {task}, which this interface does not know; "
            "allowed: models that translate, and language models. fairseq's own hub interface may "
            "load it"
        )


def check_direction(entry: StoredModel, first: StoredModel) -> None:
    """Raise ValueError for a member of an ensemble that was trained for another direction.

    With a joined dictionary nothing else would tell. Tasks of several pairs check theirs.
    """
    if any("lang_pairs" in options_of(member.cfg.task) for member in (entry, first)):
        return
    pair, expected = (
        tuple(options_of(member.cfg.task).get(side) for side in SIDES) for member in (entry, first)
    )
    # of checkpoints of stock fairseq that do not tell their languages nothing is known
    if None not in (*pair, *expected) and pair != expected:
        raise ValueError(
            f"{entry.path}: trained for {pair[0]}-{pair[1]}, {first.path} for "
            f"{expected[0]}-{expected[1]}; allowed: an ensemble of one direction"
        )
