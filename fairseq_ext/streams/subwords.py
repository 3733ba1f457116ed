"""Sub-word models by language (--bpe-models), where lines are typed: fairseq-interactive."""

import os
from typing import Any, Callable, Dict, List, Optional, Tuple

from fairseq.tasks.translation import TranslationTask
from omegaconf import DictConfig, OmegaConf
from torch import Tensor

from .config import StreamsConfig

# --bpe NAME -> the option that names its file
FILE_OPTIONS = {
    "sentencepiece": "sentencepiece_model",
    "fastbpe": "bpe_codes",
    "subword_nmt": "bpe_codes",
}


def parse_bpe_models(text: Optional[str]) -> Dict[str, str]:
    """Return the models by language: "de=de.model,fr=fr.model" -> {"de": "de.model", ..}.

    ValueError for anything else and for a language that is named twice; FileNotFoundError, naming
    the language, for a file that is not there.
    """
    models: Dict[str, str] = {}
    for entry in (entry.strip() for entry in (text or "").split(",") if entry.strip()):
        lang, _, path = entry.partition("=")
        if not lang or not path:
            raise ValueError(f"--bpe-models {text!r}: {entry!r} is not of the form LANGUAGE=FILE")
        if lang in models:
            raise ValueError(f"--bpe-models {text!r}: {lang!r} is named twice")
        if not os.path.isfile(path):
            raise FileNotFoundError(f"--bpe-models: there is no file {path} for {lang}")
        models[lang] = path
    return models


class SubwordsByLanguage(TranslationTask):
    """The part of a task that cuts each source, and joins the target, by its language's model.

    subwords: {source language: what cuts its texts}, of languages that do not take --bpe's model.
    """

    cfg: StreamsConfig
    subwords: Dict[str, Any] = {}

    def build_bpe(self, args: DictConfig) -> Any:
        """Return what joins the sub-words of the target; those of the sources go to ``subwords``.

        ValueError where a language of the direction has no model.
        """
        models = parse_bpe_models(self.cfg.bpe_models)
        if not models:
            return super().build_bpe(args)
        name = getattr(args, "_name", None)
        if name not in FILE_OPTIONS:
            raise ValueError(
                f"--bpe-models {self.cfg.bpe_models!r} with --bpe {name}: allowed: --bpe "
                + ", ".join(FILE_OPTIONS)
            )
        option = FILE_OPTIONS[name]
        default = None
        if not OmegaConf.is_missing(args, option) and args[option] is not None:
            default = super().build_bpe(args)
        coders = {
            lang: super(SubwordsByLanguage, self).build_bpe(OmegaConf.merge(args, {option: path}))
            for lang, path in models.items()
        }
        sources, target = self.cfg.source_lang.split("+"), self.cfg.target_lang
        for lang in (*sources, target):
            if coders.setdefault(lang, default) is None:
                raise ValueError(
                    f"--bpe-models {self.cfg.bpe_models!r}: no model for {lang}; allowed: name "
                    f"one, or give --{option.replace('_', '-')} for all languages without one"
                )
        self.subwords = {lang: coders[lang] for lang in sources}
        return coders[target]

    def encode(self, lang: str, text: str, encode_fn: Callable[..., str]) -> str:
        """Return a text of the source language, cut into sub-words.

        Args:
            lang: the language.
            text: as it was typed.
            encode_fn: fairseq-interactive's; takes the sub-words to be used as ``bpe``.
        """
        if lang in self.subwords:
            return encode_fn(text, bpe=self.subwords[lang])
        return encode_fn(text)

    def get_interactive_tokens_and_lengths(
        self, lines: List[str], encode_fn: Callable[..., str]
    ) -> Tuple[List[Tensor], List[int]]:
        """Return tokens and lengths of lines, cut by the sub-words of the source language."""
        lang = self.cfg.source_lang
        return super().get_interactive_tokens_and_lengths(
            lines, lambda text: self.encode(lang, text, encode_fn)
        )
