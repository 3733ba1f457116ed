"""The models of the reverse direction for dual inference: of the same checkpoint or of another."""

import copy
from argparse import Namespace
from typing import Any, Dict, List, Sequence

from fairseq import checkpoint_utils, utils
from fairseq.models import BaseFairseqModel
from omegaconf import open_dict

from ..common.stored import UNREADABLE, check_symbols, stored_of
from ..compat.checkpoints.dictionary_digests import trained_languages
from ..compat.user_errors import reason_of
from ..streams.language_pair import LanguagePair, reverse_of
from ..streams.model import HasDirections
from ..streams.stored_pairs import stored_pairs


def model_of_direction(model: BaseFairseqModel, pair: str) -> BaseFairseqModel:
    """Return the direction ``pair`` of a model of several, or the model if it has only one."""
    return model.direction(pair) if isinstance(model, HasDirections) else model


def reversed_models(models: Sequence[BaseFairseqModel], pair: str) -> List[BaseFairseqModel]:
    """Return the direction ``pair`` of these models; ValueError if they are not trained for it."""
    for model in models:
        if not isinstance(model, HasDirections):
            raise ValueError(
                f"--dual-alpha: a checkpoint of --path translates {reverse_of(pair)} only; name "
                f"one that translates {pair} with --dual-path"
            )
    try:
        return [model_of_direction(model, pair) for model in models]
    except ValueError as error:
        raise ValueError(
            f"--dual-alpha: a checkpoint of --path gives no log P(x|y): {error}; allowed: a model "
            f"of {pair} named with --dual-path"
        ) from error


def load_models(paths: str, pair: str, data: str) -> List[BaseFairseqModel]:
    """Return the direction ``pair`` of the checkpoints ``paths`` (FILE or FILE:FILE), on the CPU.

    They may be of any fairseq task that translates with the dictionaries of the folder ``data``.
    Raises ValueError, naming the file, for one that translates something else or does not fit.
    """
    models = [load_model(path, pair, data) for path in utils.split_paths(paths)]
    return [model_of_direction(model, pair) for model in models]


def load_model(path: str, pair: str, data: str) -> BaseFairseqModel:
    """Return the model of one checkpoint, made by its own task, which is set up for ``pair``."""
    place = f"--dual-path {path}"
    try:
        state = checkpoint_utils.load_checkpoint_to_cpu(path)
    except UNREADABLE as error:
        raise ValueError(f"{place}: {reason_of(error, path)}") from error
    stored = stored_of("--dual-path", path, state)
    source, target = LanguagePair.parse(pair)
    trained = trained_languages(stored.task, stored.digests)
    # a model of several pairs says itself which directions it has
    is_another = None not in trained and trained != (source, target)
    if not stored_pairs(stored.model) and is_another:
        raise ValueError(
            f"{place}: it translates {'-'.join(map(str, trained))}; allowed: a model of {pair}"
        )
    # the data are those of this run; validation BLEU would build a search that nobody needs
    state = with_task_options(
        state, data=data, source_lang=source, target_lang=target, eval_bleu=False
    )
    try:
        models, _, task = checkpoint_utils.load_model_ensemble_and_task([path], state=state)
    except (ValueError, RuntimeError) as error:
        reason = reason_of(error, path)
        raise ValueError(f"{place}: it does not fit {data} in {pair}: {reason}") from error
    for lang, words in zip((source, target), (task.source_dictionary, task.target_dictionary)):
        check_symbols(stored, f"dict.{lang}.txt", lang, words)
    return models[0]


def with_task_options(state: Dict[str, Any], **options: Any) -> Dict[str, Any]:
    """Return a checkpoint's contents with other options of its task."""
    cfg = copy.deepcopy(state["cfg"])
    if isinstance(cfg.task, Namespace):  # of a task without a dataclass
        cfg.task = Namespace(**{**vars(cfg.task), **options})  # the copy has the same object
    else:
        with open_dict(cfg.task):
            cfg.task.update(options)
    # old checkpoints have "args" beside "cfg", and fairseq would prefer them
    return {**state, "cfg": cfg, "args": None}
