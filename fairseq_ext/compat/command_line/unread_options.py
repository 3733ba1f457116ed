"""Options that fairseq 0.12.2 declares and that change nothing, by themselves or beside others."""

from __future__ import annotations

import functools
import logging

from ..user_errors import OptionError
from .chosen_classes import Values, chosen_classes, is_stock

logger = logging.getLogger(__name__)

# {option as argparse stores it: what happens whatever its value}
UNREAD = {
    "anneal_eps": "--adadelta-eps stays as it is",
    "baseline_model": "no other model is loaded",
    "baseline_model_langs": "no other model is loaded",
    "fast_stat_sync": "the criterion decides how statistics are added up",
    "generate_one_by_one": "sentences are translated in batches",
    "no_early_stop": "a training ends early with --patience alone",
}
# the same of options that all Transformers declare and language models alone read
OF_LANGUAGE_MODELS = {
    "adaptive_input": "its embeddings have one width",
    "char_inputs": "it reads words",
}


def warn_of_unread(values: Values) -> None:
    """Warn, once in a process, of each option that is set and does nothing.

    OptionError where it is a model of this package that does not read it.
    """
    for name, instead in UNREAD.items():
        if values.get(name):
            _warn(f"--{name.replace('_', '-')} does nothing in fairseq 0.12.2: {instead}")
    if values.get("lm_path") and values.get("lm_weight") == 0:  # which is fairseq's default
        _warn("--lm-path does nothing with --lm-weight 0, the default: give it a weight")
    for name, instead in OF_LANGUAGE_MODELS.items():
        # fairseq does not quantize embeddings with --adaptive-input
        if values.get(name) and not values.get("quant_noise_pq"):
            _name_in_translation_model(values, name, instead)


def _name_in_translation_model(values: Values, name: str, instead: str) -> None:
    """Warn of an option of language models in another model; OptionError in one of this package."""
    for entry in set(chosen_classes({"arch": values.get("arch")})):
        is_language_model = any(base.__name__ == "FairseqLanguageModel" for base in entry.__mro__)
        if is_language_model or not is_stock(entry):
            continue
        text = f"--{name.replace('_', '-')} does nothing with --arch {values['arch']}: {instead}"
        if entry.__module__.startswith("fairseq_ext."):
            raise OptionError(f"{text}; allowed: leave it out")
        _warn(text)


@functools.lru_cache(maxsize=None)  # fairseq reads a command line several times
def _warn(text: str) -> None:
    logger.warning(text)
