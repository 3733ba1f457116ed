"""Options that fairseq 0.12.2 declares and that change nothing, by themselves or beside others."""

from __future__ import annotations

import argparse
import functools
import logging
import sys
from importlib.util import find_spec

from ..user_errors import OptionError, option_of
from .chosen_classes import Values, chosen_model, is_language_model, is_stock, names_of_bases
from .companion_options import idle_options
from .option_values import is_stock_alone
from .training_checks import is_training

logger = logging.getLogger(__name__)

# {option as argparse stores it: what happens whatever its value}
UNREAD = {
    "anneal_eps": "--adadelta-eps stays as it is",
    "baseline_model": "no other model is loaded",
    "baseline_model_langs": "no other model is loaded",
    "decoding_format": "every word is the most probable one",
    "fast_stat_sync": "the criterion decides how statistics are added up",
    "generate_one_by_one": "sentences are translated in batches",
    "no_early_stop": "a training ends early with --patience alone",
}
# {option that all Transformers declare and language models alone read: what others have}
OF_LANGUAGE_MODELS = {
    "adaptive_input": "its embeddings have one width",
    "char_inputs": "it reads words",
}
# {option: (its values that leave it off, the model that stores it, what happens instead)}
OF_ONE_MODEL: dict[str, tuple[tuple[object, ...], str, str]] = {
    "decoder_out_embed_dim": (
        (None,),
        "FConvLanguageModel",
        "its output has the width of --decoder-embed-dim",
    ),
    "decoder_attention": ((None, "0", "False"), "LSTMLanguageModel", "it has no source"),
}
# models that look at --criterion before they form an adaptive softmax
WITH_ADAPTIVE_LOSS = {"LSTMModel", "LSTMLanguageModel", "FConvLanguageModel"}

# the criterion that learns from word alignments
ALIGNING = "label_smoothed_cross_entropy_with_alignment"


def warn_of_unread(values: Values) -> None:
    """Warn, once in a process, of each option that is set and does nothing.

    OptionError where it is a model of this package that does not read it.
    """
    for name, instead in UNREAD.items():
        if values.get(name):
            _warn(f"{option_of(name)} does nothing in fairseq 0.12.2: {instead}")
    if values.get("lm_path") and values.get("lm_weight") == 0:  # which is fairseq's default
        _warn("--lm-path does nothing with --lm-weight 0, the default: give it a weight")
    for text in idle_options(values):
        _warn(text)
    if values.get("export") and is_training(values) and find_spec("apex") is None:
        _warn("--export does nothing without the package apex: no layer norm is fused")
    for name, instead in OF_LANGUAGE_MODELS.items():
        # fairseq does not quantize embeddings with --adaptive-input
        if values.get(name) and not values.get("quant_noise_pq"):
            _name_in_translation_model(values, name, instead)
    _name_clusters(values)
    _name_of_one_model(values)
    _name_residuals(values)
    _name_unread_alignments(values)


def _name_in_translation_model(values: Values, name: str, instead: str) -> None:
    """Warn of an option of language models in another model; OptionError in one of this package."""
    model = chosen_model(values)
    if model is not None and is_stock(model) and not is_language_model(model):
        text = f"{option_of(name)} does nothing with --arch {values['arch']}: {instead}"
        _refuse_or_warn(model, text)


def _name_clusters(values: Values) -> None:
    """Warn of clusters of words that a model forms for its --criterion adaptive_loss alone.

    OptionError in a model of this package.
    """
    arch, cutoff, criterion = (
        values.get(name) for name in ("arch", "adaptive_softmax_cutoff", "criterion")
    )
    model = chosen_model(values)
    if cutoff is None or criterion in (None, "adaptive_loss") or model is None:
        return
    if not names_of_bases(model) & WITH_ADAPTIVE_LOSS or not is_stock(model):
        return
    preset = argparse.Namespace()
    sys.modules["fairseq.models"].ARCH_CONFIG_REGISTRY[arch](preset)
    if cutoff != preset.adaptive_softmax_cutoff:  # which stands in the options of every training
        text = (
            f"--adaptive-softmax-cutoff {cutoff} does nothing with --arch {arch} and --criterion "
            f"{criterion}: the softmax is over all words at once"
        )
        _refuse_or_warn(model, text, allowed="leave it out, or --criterion adaptive_loss")


def _name_of_one_model(values: Values) -> None:
    """Warn of an option that a model declares and stores, and does not read.

    OptionError in a model of this package.
    """
    model = chosen_model(values)
    if not is_training(values) or model is None or not is_stock(model):
        return
    for name, (neutral, storing_it, instead) in OF_ONE_MODEL.items():
        value = values.get(name)
        if storing_it not in names_of_bases(model) or value in neutral:
            continue
        if name == "decoder_out_embed_dim" and value == values.get("decoder_embed_dim"):
            continue
        text = f"{option_of(name, value)} does nothing with --arch {values['arch']}: {instead}"
        _refuse_or_warn(model, text)


def _name_residuals(values: Values) -> None:
    """Warn of --residuals between the layers of an LSTM that has one.

    OptionError in a model of this package.
    """
    if not is_training(values) or not values.get("residuals") or values.get("decoder_layers") != 1:
        return
    model = chosen_model(values)
    if model is None or not is_stock(model) or "LSTMLanguageModel" not in names_of_bases(model):
        return
    text = "--residuals does nothing with --decoder-layers 1: they are between two layers"
    _refuse_or_warn(model, text, allowed="leave it out, or more layers")


def _name_unread_alignments(values: Values) -> None:
    """Warn of alignments that the criterion does not read.

    OptionError with a model of this package.
    """
    criterion = values.get("criterion")
    if not is_training(values) or not values.get("load_alignments") or criterion is None:
        return
    if criterion == ALIGNING or not is_stock_alone(values):
        return
    text = f"--load-alignments does nothing with --criterion {criterion}"
    hint = f": --criterion {ALIGNING} learns from them"
    _refuse_or_warn(chosen_model(values), text, hint)


def _refuse_or_warn(
    model: type | None, text: str, hint: str = "", allowed: str = "leave it out"
) -> None:
    """Raise OptionError for an option that a model of this package does not read, warn for others.

    Args:
        text: what does nothing, and with what.
        hint: follows the text in the warning.
        allowed: follows it in the error.
    """
    if model is not None and model.__module__.startswith("fairseq_ext."):
        raise OptionError(f"{text}; allowed: {allowed}")
    _warn(text + hint)


@functools.lru_cache(maxsize=None)  # fairseq reads a command line several times
def _warn(text: str) -> None:
    logger.warning(text)
