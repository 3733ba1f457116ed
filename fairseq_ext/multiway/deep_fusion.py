"""Deep fusion: a trained translation model and a trained language model in one (Single+DF).

Both are read when a run starts; the run's checkpoints hold all that is needed. Only the readout,
the softmax, W_s and the controller are trained (Gulcehre et al. 2015, Sec. 4.2); the equations are
in fusion.py.
"""

import re
from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional

from fairseq.data import Dictionary
from fairseq.models import register_model
from torch import Tensor

from ..common.stored import Stored, check_symbols, read_stored
from ..streams.schedule import sides
from .config import MultiwayConfig, encoder_sizes, size_of
from .fusion import FusedDecoder, LanguageSize
from .model import MultiwayModel

TRANSLATION, LANGUAGE = "--translation-model", "--language-model"
SIZES = (
    "embed_dim",
    "hidden_size",
    "context_size",
    "readout_size",
    "init_hidden_size",
    "init_size",
)
NOT_TO_BE_GIVEN = (
    "--language-model-size is what a run writes for its checkpoints: leave it out and give "
    f"{TRANSLATION} and {LANGUAGE}"
)
Weights = Dict[str, Tensor]


def _taken(what: str):
    text = f"{what}: taken from {TRANSLATION}; where given it must be the same"
    return field(default=None, metadata={"help": text})


@dataclass
class DeepFusionConfig(MultiwayConfig):
    translation_model: Optional[str] = field(
        default=None,
        metadata={"help": "checkpoint of a multiway_gru that translates the pairs of the run"},
    )
    language_model: Optional[str] = field(
        default=None,
        metadata={"help": "checkpoint of a gru_lm over the dictionary of the target language"},
    )
    embed_dim: Optional[int] = _taken("D, width of embeddings")
    hidden_size: Optional[int] = _taken("H, GRU units of the decoder")
    encoder_hidden_size: Optional[str] = _taken("GRU units of the encoders")
    context_size: Optional[int] = _taken("A, width of annotations and attention")
    readout_size: Optional[int] = _taken("O, tanh units before the softmax")
    init_hidden_size: Optional[int] = _taken("hidden layer of the initialiser")
    init_size: Optional[int] = _taken("output of the initialiser")
    dropout: Optional[float] = field(
        default=None,
        metadata={
            "help": f"on embeddings and on the readout; default: that of {TRANSLATION}. The "
            "language model has none here"
        },
    )
    language_model_size: Optional[str] = field(
        default=None,
        metadata={
            "help": "D,L of the language model. A run writes it here for its checkpoints, which "
            "need neither of the two models any more; not to be given"
        },
    )


def read_checkpoint(option: str, path: str, architecture: str) -> Stored:
    """The checkpoint at ``path``; ValueError if there is none or it is of another architecture."""
    stored = read_stored(option, path)
    if stored.architecture != architecture:
        raise stored.error(f"holds a {stored.model._name}; it must be a {architecture}")
    return stored


def check_dictionary(stored: Stored, prefix: str, file: str, lang: str, dictionary: Dictionary):
    """Raise ValueError unless the embedding under ``prefix`` was trained with this dictionary."""
    size = stored.weights[f"{prefix}.embedding.weight"].size(0)
    if size != len(dictionary):
        raise stored.error(
            f"has {size} words, dict.{lang}.txt of the run's data has {len(dictionary)}; both "
            "models must be trained with the same dictionary"
        )
    check_symbols(stored, file, lang, dictionary)


class Start:
    """What a run starts from.

    Args:
        cfg: its options.
        dictionaries: {lang: dictionary}.

    Attributes:
        values: {option: value} that the two checkpoints settle.

    Raises ValueError, naming the option, for a missing checkpoint or one that does not fit.
    """

    def __init__(self, cfg: DeepFusionConfig, dictionaries: Dict[str, Dictionary]):
        pairs = cfg.lang_pairs.split(",")
        self.sources, targets = sides(pairs)
        self.target = _only_target(pairs, targets)
        _check_given(cfg)
        self.translation = read_checkpoint(TRANSLATION, cfg.translation_model, "multiway_gru")
        self.language = read_checkpoint(LANGUAGE, cfg.language_model, "gru_lm")
        self._check_translation(dictionaries)
        check_dictionary(
            self.language,
            "decoder.language",
            "dict.txt",
            self.target,
            dictionaries[self.target],
        )
        self.values = self._values(cfg)

    def _check_translation(self, dictionaries: Dict[str, Dictionary]) -> None:
        sides = [("encoders", lang) for lang in self.sources] + [("decoders", self.target)]
        for side, lang in sides:
            if f"{side}.{lang}.embedding.weight" not in self.translation.weights:
                raise self.translation.error(
                    f"has no {side[:-1]} of {lang}; it translates "
                    f"{self.translation.model.lang_pairs}"
                )
            file = f"dict.{lang}.txt"
            check_dictionary(self.translation, f"{side}.{lang}", file, lang, dictionaries[lang])

    def _values(self, cfg: DeepFusionConfig) -> Dict[str, Any]:
        stored = self.translation.model
        values = {name: stored[name] for name in SIZES}
        for name, value in values.items():
            if cfg[name] not in (None, value):
                raise self.translation.error(
                    f"has --{name.replace('_', '-')} {value}, the run's is {cfg[name]}; leave the "
                    "option out"
                )
        units = {lang: self._encoder_units(lang) for lang in self.sources}
        given = encoder_sizes(cfg.encoder_hidden_size, self.sources, 0)
        if cfg.encoder_hidden_size and any(given[lang] not in (0, units[lang]) for lang in units):
            raise self.translation.error(
                f"has encoders of {units} units, --encoder-hidden-size is "
                f"{cfg.encoder_hidden_size}; leave the option out"
            )
        values["encoder_hidden_size"] = ",".join(f"{lang}={n}" for lang, n in units.items())
        values["dropout"] = stored.dropout if cfg.dropout is None else cfg.dropout
        language = self.language.model
        values["language_model_size"] = f"{language.embed_dim},{language.hidden_size}"
        return values

    def _encoder_units(self, lang: str) -> int:
        name = f"encoders.{lang}.recurrence.forwards.weight_hh_l0"
        return self.translation.weights[name].size(1)

    def weights_for(self, names: List[str]) -> Weights:
        """{name: value} of those parameters of the fused model that the two models have."""
        found, prefix = {}, f"decoders.{self.target}.language."
        for name in names:
            if name.startswith(prefix):
                found[name] = self.language.weights["decoder.language." + name[len(prefix) :]]
            elif name in self.translation.weights:
                found[name] = self.translation.weights[name]
        return found


def _only_target(pairs: List[str], targets: List[str]) -> str:
    if len(targets) > 1:
        raise ValueError(
            f"--lang-pairs {','.join(pairs)}: there is one language model, of one language, but "
            f"these pairs have the targets {', '.join(targets)}"
        )
    return targets[0]


def _check_given(cfg: DeepFusionConfig) -> None:
    paths = {TRANSLATION: cfg.translation_model, LANGUAGE: cfg.language_model}
    missing = [option for option, path in paths.items() if not path]
    if missing:
        raise ValueError(
            f"{' and '.join(missing)}: not given; a deep_fusion_gru starts from the checkpoints of "
            "a trained multiway_gru and of a trained gru_lm"
        )


def _check_complete(cfg: DeepFusionConfig) -> None:
    """Raise ValueError unless all sizes are there, as in the configuration that a run stores."""
    complete = all(cfg[name] is not None for name in (*SIZES, "dropout"))
    if not complete or not re.fullmatch(r"\d+,\d+", cfg.language_model_size):
        raise ValueError(f"{NOT_TO_BE_GIVEN}; it is {cfg.language_model_size!r}")


def _remember(cfg: DeepFusionConfig, values: Dict[str, Any]) -> None:
    """Write the values into ``cfg`` and into the run's own configuration.

    fairseq hands ``build_model`` a merged copy, whose parent is that of the original; checkpoints
    hold the original.
    """
    run = cfg._get_parent()
    for one in [cfg] if run is None else [cfg, run.model]:
        for name, value in values.items():
            one[name] = value


@register_model("deep_fusion_gru", dataclass=DeepFusionConfig)
class DeepFusionModel(MultiwayModel):
    """``MultiwayModel`` with one target language, whose decoder also reads a language model.

    has_weights: whether any were loaded, from the two models or from a run's checkpoint.
    """

    has_weights = False
    build_backward = None  # most of the model is not trained: nothing for the criterion twin

    @classmethod
    def build_model(cls, cfg: DeepFusionConfig, task):
        """Start from the two models or, where a checkpoint gives the sizes, from nothing."""
        start = None
        if cfg.language_model_size is not None:
            _check_complete(cfg)
        else:
            start = Start(cfg, task.dictionaries)
            _remember(cfg, start.values)
        model = super().build_model(cfg, task)
        if start:
            weights = start.weights_for(list(model.state_dict()))
            model.load_state_dict({**model.state_dict(), **weights})
        trained = set(model.parameter_groups()["output"])
        for name, parameter in model.named_parameters():
            parameter.requires_grad_(name in trained)
        return model

    @classmethod
    def build_decoder(cls, cfg: DeepFusionConfig, vocab_size: int, padding_index: int):
        embed_dim, hidden_size = (int(number) for number in cfg.language_model_size.split(","))
        language_size = LanguageSize(embed_dim, hidden_size)
        return FusedDecoder(size_of(cfg), language_size, vocab_size, padding_index)

    def load_state_dict(self, *arguments, **options):
        self.has_weights = True
        return super().load_state_dict(*arguments, **options)

    def forward(self, *arguments, **options):
        """As in ``MultiwayModel``; ValueError for a model that was never given any weights."""
        if not self.has_weights:
            raise ValueError(NOT_TO_BE_GIVEN)
        return super().forward(*arguments, **options)
