"""Sub-word models by language (--bpe-models), where lines are typed: fairseq-interactive."""

import os
from typing import Any, Callable, Dict, Mapping, Optional, Tuple

from omegaconf import DictConfig, OmegaConf

from ..common.named_values import named_values
from ..compat.user_errors import option_of
from .language_pair import LanguagePair

# --bpe NAME -> the option that names its file
FILE_OPTIONS = {
    "sentencepiece": "sentencepiece_model",
    "fastbpe": "bpe_codes",
    "subword_nmt": "bpe_codes",
}
# --bpe NAME -> the mark that a part of its sub-words have, in any dictionary of them
MARKS = {"sentencepiece": "\u2581", "subword_nmt": "@@", "fastbpe": "@@"}


class DirectionCoder:
    """Cuts sources by the model of their language and joins targets by that of theirs."""

    def __init__(self, source: Any, target: Any):
        self.source, self.target = source, target

    def encode(self, text: str) -> str:
        """Return the sub-words of a source."""
        return str(self.source.encode(text))

    def decode(self, text: str) -> str:
        """Return the text of a target."""
        return str(self.target.decode(text))


class Uncut:
    """What stands for --bpe where nothing has cut the texts: they stay as they are."""

    def encode(self, text: str) -> str:
        """Return the text."""
        return text

    def decode(self, text: str) -> str:
        """Return the text."""
        return text


def parse_bpe_models(text: Optional[str]) -> Dict[str, str]:
    """Return the models by language: "de=de.model,fr=fr.model" -> {"de": "de.model", ..}.

    ValueError for anything else and for a language that is named twice; FileNotFoundError, naming
    the language, for a file that is not there.
    """
    models: Dict[str, str] = {}
    for entry, lang, path in named_values(text):
        if not lang or not path:
            raise ValueError(f"--bpe-models {text!r}: {entry!r} is not of the form LANGUAGE=FILE")
        if lang in models:
            raise ValueError(f"--bpe-models {text!r}: {lang!r} is named twice")
        if not os.path.isfile(path):
            raise FileNotFoundError(f"--bpe-models: there is no file {path} for {lang}")
        models[lang] = path
    return models


class SubwordsByLanguage:
    """Cuts each source with the tokenizer and the sub-word model of its language.

    The task sets the attributes when it has built what they hold.

    Attributes:
        coders: {source language: what cuts words into sub-words}, of languages that do not take
            --bpe's model.
        tokenizers: {source language: what cuts texts into words}, of languages that do not take
            --tokenizer's.
    """

    def __init__(self) -> None:
        self.coders: Mapping[str, Any] = {}
        self.tokenizers: Mapping[str, Any] = {}

    def encode(self, lang: str, text: str, encode_fn: Callable[..., str]) -> str:
        """Return a text of the source language, cut into sub-words.

        Args:
            lang: the language.
            text: as it was typed.
            encode_fn: fairseq-interactive's; takes what is used instead of its own.
        """
        places = {"bpe": self.coders, "tokenizer": self.tokenizers}
        return encode_fn(
            text, **{name: coders[lang] for name, coders in places.items() if lang in coders}
        )


def build_subwords(
    bpe_models: str,
    args: DictConfig,
    direction: LanguagePair,
    build: Callable[[DictConfig], Any],
) -> Tuple[Dict[str, Any], Any]:
    """Return what cuts each source of a direction, and what joins the sub-words of its target.

    Args:
        bpe_models: --bpe-models.
        args: the options of --bpe.
        direction: the languages.
        build: what builds a coder from such options.

    ValueError where a language of the direction has no model.
    """
    models = parse_bpe_models(bpe_models)
    name = getattr(args, "_name", None)
    if name not in FILE_OPTIONS:
        raise ValueError(
            f"--bpe-models {bpe_models!r} with --bpe {name}: allowed: --bpe "
            + ", ".join(FILE_OPTIONS)
        )
    option = FILE_OPTIONS[name]
    default = None
    # without --sentencepiece-model or --bpe-codes the option is "???",
    # and omegaconf raises an error when it is read
    if not OmegaConf.is_missing(args, option) and args[option] is not None:
        default = build(args)
    coders = {lang: build(OmegaConf.merge(args, {option: path})) for lang, path in models.items()}
    for lang in (*direction.sources, direction.target):
        # all languages of the direction need one: the target's
        # joins the sub-words of the hypotheses
        if coders.setdefault(lang, default) is None:
            raise ValueError(
                f"--bpe-models {bpe_models!r}: no model for {lang}; allowed: name "
                f"one, or give {option_of(option)} for all languages without one"
            )
    return {lang: coders[lang] for lang in direction.sources}, coders[direction.target]
