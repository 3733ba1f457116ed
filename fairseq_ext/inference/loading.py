"""``fairseq_ext.load``: a checkpoint, several, or a packed folder -> a model that is ready."""

import contextlib
import os
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Dict, Iterator, List, Mapping, MutableMapping, Optional, Sequence, Union

import torch
from fairseq import checkpoint_utils, tasks
from fairseq.dataclass.configs import GenerationConfig
from fairseq.models import BaseFairseqModel
from fairseq.tasks import FairseqTask
from omegaconf import DictConfig, open_dict

from ..common.stored import WITHOUT_SCORES
from ..compat.checkpoints.configurations import (
    FIRST_VECTORS,
    chosen_name,
    options_of,
    options_of_task,
)
from ..compat.checkpoints.refusals import check_names
from ..compat.data.language_pairs import language_pairs
from ..streams.language_pair import LanguagePair, languages
from ..streams.stored_pairs import stored_pairs
from ..twin.captions.task import ImageCaptioningTask
from .model import LoadedModels, Model
from .places import PathLike, data_folder, subword_folders
from .search import TASK_OPTIONS
from .stored_models import (
    ModelSource,
    StoredModel,
    check_direction,
    check_supported,
    read_source,
)
from .subword_models import (
    FILE_OPTIONS,
    NONE,
    WITHOUT_FILE,
    SubwordModels,
    SubwordsArgument,
    check_spelling,
    find_subwords,
    fitting,
)
from .twin_network import load_twin

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
# options of the tasks that score in validation or say how to train, and their values for inference
WITHOUT_TRAINING: Dict[str, Any] = {
    **WITHOUT_SCORES,
    "bpe_models": None,
    "truncate_source": False,
    "num_batch_buckets": 0,
    **TASK_OPTIONS,  # which the commands do not take from checkpoints either
}
_loading = threading.Lock()  # building models draws random numbers, see ``undisturbed``


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Leave torch's random numbers of the process as they are: parameters are drawn, then read.

    They are drawn on the CPU: asking every GPU for its state would take memory of each.
    """
    with _loading, torch.random.fork_rng(devices=[]):
        yield


def load(
    checkpoint: Union[PathLike, Sequence[PathLike]],
    data: Optional[PathLike] = None,
    direction: Optional[str] = None,
    *,
    device: str = "cpu",
    dtype: str = "float32",
    subwords: SubwordsArgument = None,
    bpe: Optional[str] = None,
    tokenizer: Optional[str] = None,
) -> Model:
    """Return a trained model, ready to translate, classify or score.

    Args:
        checkpoint: a file written by fairseq-train, a folder written by ``fairseq-ext pack``, or
            several files, which are an ensemble.
        data: the data folder of the training. Without it the folder of the checkpoint and the one
            that the checkpoint names are looked at. A packed folder needs none.
        direction: such as "de-en", or "de+fr-en" for two sources; default: the first that the model
            was trained for.
        device: "cpu", "cuda" or "cuda:N".
        dtype: "float32", "bfloat16" or "float16", of the parameters.
        subwords: the file of the sub-word model, {language: file}, or "none" for texts that are cut
            already. Without it they are looked for beside the dictionaries and the checkpoint.
        bpe: fairseq's --bpe, where these files do not show it; "characters", "bytes" have none.
        tokenizer: fairseq's --tokenizer, such as "moses"; default: that of the training, and none
            with subwords="none".

    Raises FileNotFoundError, ValueError or TypeError, naming the file or the argument.
    """
    check_target(device, dtype)
    check_paths(data, subwords)
    source = read_source(checkpoint)
    first = source.stored[0]
    for entry in source.stored:
        check_supported(entry)
        check_direction(entry, first)
    folder = data_folder(first.path, first.cfg.task, data or source.folder)
    if chosen_name(first.cfg.task, "task") not in tasks.TASK_REGISTRY:
        check_names(str(first.path), first.state, None)
    with undisturbed():
        task = set_up_task(first.cfg, folder, direction)
        models = build_models(source.stored, task)
        twin = load_twin(first.cfg, first.state, task)
    models_of_subwords = _subwords_for(source, task, folder, subwords, bpe)
    place = torch.device(device)
    for module in [*models, *([twin] if twin is not None else [])]:
        module.to(device=place, dtype=DTYPES[dtype])
    for model in models:
        prepare(model, dtype)
    words = _tokenizer_for(source, tokenizer, subwords)
    # their files are read now: the folder may be moved or replaced while the model is used
    coders = models_of_subwords.coders(dictionaries_of(task))
    model = Model(
        LoadedModels(models, place, models_of_subwords, coders, words, twin, folder), task
    )
    if tokenizer:
        _check_tokenizer(tokenizer, model)
    return model


def _check_tokenizer(tokenizer: str, model: Model) -> None:
    """Raise ValueError for a tokeniser that the model has no use for, or that there is not."""
    if not model.has_languages:
        raise ValueError(
            f"tokenizer {tokenizer!r}: a model of {model.kind} has no language to cut words of; "
            "allowed: leave it out, and give words with spaces between them"
        )
    model.coders()  # builds it: now, and not with the first text


def _tokenizer_for(
    source: ModelSource, named: Optional[str], subwords: SubwordsArgument
) -> Optional[Dict[str, Any]]:
    """Return fairseq's options of the tokenizer, as in the training if it had the same; or None."""
    # texts that are cut into sub-words were cut into words before
    name = named or (None if subwords == NONE else source.tokenizer)
    if name is None:
        return None
    stored = options_of(source.stored[0].cfg.get("tokenizer"))
    return dict(stored) if chosen_name(stored, "tokenizer") == name else {"_name": name}


def _subwords_for(
    source: ModelSource, task: FairseqTask, data: Path, named: SubwordsArgument, kind: Optional[str]
) -> SubwordModels:
    """Return the sub-word models that the caller names, or those beside the model and its data."""
    model = source.stored[0]
    places = subword_folders(model.path, data)
    stored = options_of(model.cfg.get("bpe"))
    dictionaries = dictionaries_of(task)
    subwords = source.subwords
    if named is not None or subwords is None:
        subwords = find_subwords(places, list(dictionaries), stored, named, kind)
    if kind and subwords.kind != kind:
        raise ValueError(
            f"bpe {kind!r}: the model has {subwords.kind or 'no'} sub-words; allowed: leave it "
            f"out, {', '.join(WITHOUT_FILE)}, or a file in subwords of the kind "
            f"{', '.join(FILE_OPTIONS)}"
        )
    if named is None and source.subwords is None:
        if not kind and not chosen_name(stored, "bpe"):
            subwords = fitting(subwords, dictionaries)
        check_spelling(subwords, dictionaries)
    return subwords


def check_paths(data: Any, subwords: Any) -> None:
    """Raise TypeError for what names no folder, or no files of sub-word models."""
    if data is not None and not isinstance(data, (str, os.PathLike)):
        raise TypeError(f"data {data!r}: allowed: the path of a folder")
    files = subwords.values() if isinstance(subwords, Mapping) else [subwords or ""]
    if not all(isinstance(file, (str, os.PathLike)) for file in files):
        raise TypeError(f"subwords {subwords!r}: allowed: a path, or {{language: path}}")


def check_target(device: str, dtype: str) -> None:
    """Raise ValueError for a device or a type that there is not."""
    if dtype not in DTYPES:
        raise ValueError(f"dtype {dtype!r}: allowed: {', '.join(DTYPES)}")
    try:
        place = torch.device(device)
    except (RuntimeError, TypeError) as error:
        raise ValueError(f"device {device!r}: allowed: cpu, cuda, cuda:N") from error
    if place.type not in ("cpu", "cuda"):
        raise ValueError(f"device {device!r}: allowed: cpu, cuda, cuda:N")
    if place.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"device {device!r}: torch sees no CUDA device; allowed: cpu")
    count = torch.cuda.device_count() if place.type == "cuda" else 1
    if place.index is not None and place.index >= count:
        raise ValueError(
            f"device {device!r}: torch sees {count} CUDA devices; allowed: cuda:0 to "
            f"cuda:{count - 1}"
        )


def set_up_task(cfg: DictConfig, folder: Path, direction: Optional[str]) -> FairseqTask:
    """Return the task of a checkpoint for inference in one direction, with data in ``folder``."""
    options = options_of(cfg.task)
    pairs = stored_pairs(cfg.model)
    if pairs:
        # fairseq's task translates no direction but those of its training
        is_bound = chosen_name(options, "task") == "multilingual_translation"
        requested = _direction_among(pairs, direction, is_bound)
    elif direction is not None:
        with open_dict(cfg):
            _check_only_direction(options, direction, folder)
    with open_dict(cfg):
        options["data"] = str(folder)
        for name, value in WITHOUT_TRAINING.items():
            if name in options:
                options[name] = value
        if pairs:  # schedules are not looked at where both are given
            options["lang_pairs"] = ",".join(pairs)
            options["source_lang"], options["target_lang"] = requested
    task = tasks.setup_task(cfg.task)
    _find_statistics(task, folder)
    return task


def _direction_among(pairs: List[str], direction: Optional[str], is_bound: bool) -> LanguagePair:
    """Return the direction, or the first of the model's ``pairs``.

    ValueError for a language that no pair has, and where ``is_bound`` for any other pair.
    """
    if is_bound and direction not in (None, *pairs):
        raise ValueError(f"direction {direction!r}: allowed: {', '.join(pairs)}")
    requested = LanguagePair.parse(pairs[0] if direction is None else direction)
    for language in (*requested.sources, requested.target):
        if language not in languages(pairs):
            raise ValueError(
                f"direction {direction!r}: no {language} in {', '.join(pairs)}, which the model "
                "was trained for"
            )
    return requested


def _check_only_direction(options: MutableMapping[str, Any], direction: str, folder: Path) -> None:
    """Raise ValueError for another direction than that of a model of one.

    A training without -s and -t took the direction from the names in its data folder. Where neither
    the checkpoint nor ``folder`` tells it, that of the caller goes into the ``options``.
    """
    trained = options.get("source_lang"), options.get("target_lang")
    if "source_lang" in options and None in trained and folder.is_dir():
        pairs = language_pairs(str(folder))
        trained = pairs[0] if len(pairs) == 1 else LanguagePair.parse(direction)
        options["source_lang"], options["target_lang"] = trained
    if direction != f"{trained[0]}-{trained[1]}":
        allowed = "leave it out" if None in trained else f"{trained[0]}-{trained[1]}"
        raise ValueError(f"direction {direction!r}: the model has one; allowed: {allowed}")


def _find_statistics(task: FairseqTask, folder: Path) -> None:
    """Let a task of recordings find its statistics in ``folder`` where they are not as stored."""
    settings = getattr(getattr(task, "data_cfg", None), "config", None) or {}
    for group in ("global_cmvn", "utterance_cmvn"):
        stored = settings.get(group, {}).get("stats_npz_path")
        if stored and not Path(stored).is_file():
            settings[group]["stats_npz_path"] = str(folder / Path(stored).name)


def build_models(stored: List[StoredModel], task: FairseqTask) -> List[BaseFairseqModel]:
    """Return the models of an ensemble, with their parameters."""
    models = []
    for entry in stored:
        with open_dict(entry.cfg):
            options = options_of(entry.cfg.model)
            for name in FIRST_VECTORS:
                if options.get(name):
                    options[name] = None
        loaded, _, _ = checkpoint_utils.load_model_ensemble_and_task(
            [str(entry.path)], task=task, state=entry.state
        )
        models += loaded
    return models


def prepare(model: BaseFairseqModel, dtype: str) -> None:
    """Make a model ready for searches as fairseq's commands do, with its attention."""
    # models of fairseq return their attention where alignments are asked for; fconv would take
    # the rows of a batch for beams of one size, whatever the search is asked for
    generation = GenerationConfig(print_alignment="soft", no_beamable_mm=True)
    common = SimpleNamespace(bf16=dtype == "bfloat16", fp16=dtype == "float16")
    model.prepare_for_inference_(SimpleNamespace(common=common, generation=generation))


def dictionaries_of(task: FairseqTask) -> Dict[str, Any]:
    """Return {language: dictionary} of the texts that a task reads and writes."""
    if hasattr(task, "dictionaries"):
        return dict(task.dictionaries)
    options = options_of_task(task)
    if isinstance(task, ImageCaptioningTask):
        return {"": task.target_dictionary}
    if task.source_dictionary is None:  # the configuration of recordings says how texts are cut
        return {}
    if options.get("source_lang") is None:  # a language model
        return {"": task.source_dictionary}
    return {
        options["source_lang"]: task.source_dictionary,
        options["target_lang"]: task.target_dictionary,
    }
