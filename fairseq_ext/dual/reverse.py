"""The models of the other direction, for dual inference: the same checkpoint's or another's."""

import pickle
from types import SimpleNamespace
from typing import List

from fairseq import checkpoint_utils, utils
from omegaconf import open_dict
from torch import nn

from ..common.stored import Stored, check_symbols


def reverse_of(pair: str) -> str:
    """ "de-en" -> "en-de"."""
    return "-".join(reversed(pair.split("-")))


def one_direction(model: nn.Module, pair: str) -> nn.Module:
    """The direction of a model of several, or the model that has only one."""
    return model.direction(pair) if hasattr(model, "direction") else model


def same_models(models: List[nn.Module], pair: str) -> List[nn.Module]:
    """The direction ``pair`` of these models. ValueError where they translate one direction."""
    for model in models:
        if not hasattr(model, "direction"):
            raise ValueError(
                f"--dual-alpha: a checkpoint of --path translates {reverse_of(pair)} only; name "
                f"one that translates {pair} with --dual-path"
            )
    return [model.direction(pair) for model in models]


def load_models(paths: str, pair: str, data: str) -> List[nn.Module]:
    """The direction ``pair`` of the checkpoints ``paths`` ("FILE" or "FILE:FILE"), on the CPU.

    They may be of any fairseq task that translates with the dictionaries of the folder ``data``.
    Raises ValueError, naming the file, for one that translates something else or does not fit.
    """
    return [one_direction(load_model(path, pair, data), pair) for path in utils.split_paths(paths)]


def load_model(path: str, pair: str, data: str) -> nn.Module:
    """The model of one checkpoint, by its own task set up for ``pair``."""
    place = f"--dual-path {path}"
    try:
        state = checkpoint_utils.load_checkpoint_to_cpu(path)
    except (OSError, EOFError, RuntimeError, pickle.UnpicklingError) as error:
        raise ValueError(f"{place}: {error}") from error
    # old checkpoints have both, and fairseq would read the arguments again
    state["args"] = None
    cfg = state["cfg"].task
    source, target = pair.split("-")
    stored = Stored("--dual-path", path, None, SimpleNamespace(data=cfg.get("data")), {})
    trained = f"{cfg.get('source_lang')}-{cfg.get('target_lang')}"
    several = getattr(state["cfg"].model, "lang_pairs", None)
    if not several and trained != pair:
        raise ValueError(f"{place}: it translates {trained}; allowed: a model of {pair}")
    with open_dict(cfg):
        cfg.data, cfg.source_lang, cfg.target_lang, cfg.eval_bleu = data, source, target, False
    try:
        models, _, task = checkpoint_utils.load_model_ensemble_and_task([path], state=state)
    except (ValueError, RuntimeError) as error:
        raise ValueError(f"{place}: it does not fit {data} in {pair}: {error}") from error
    for lang, words in zip((source, target), (task.source_dictionary, task.target_dictionary)):
        check_symbols(stored, f"dict.{lang}.txt", lang, words)
    return models[0]
