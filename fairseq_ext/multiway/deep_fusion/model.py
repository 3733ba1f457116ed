"""Deep fusion: a trained translation model and a trained language model in one (Single+DF).

Both are read when a run starts; the run's checkpoints hold all that is needed. Only the readout,
the softmax, W_s and the controller are trained (Gulcehre et al. 2015, Sec. 4.2); the equations are
in modules.py.
"""

import copy
import re
from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional, Tuple

from fairseq.data import Dictionary
from fairseq.models import register_model
from fairseq.tasks import FairseqTask
from torch import Tensor

from ...common.run_config import carry_in_checkpoints
from ...common.stored import Stored, check_symbols, read_stored
from ...compat.user_errors import option_of
from ...streams.language_pair import sides
from ...streams.stored_pairs import stored_pairs
from ..config import MultiwayConfig, encoder_sizes, encoder_types, size_of
from ..model import MultiwayModel
from .modules import FusedDecoder, LanguageSize

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


def _inherited(what: str) -> Any:
    """Return an option whose value comes from the translation model."""
    text = f"{what}: taken from {TRANSLATION}; a value that is set must be the same"
    return field(default=None, metadata={"help": text})


@dataclass
class DeepFusionConfig(MultiwayConfig):
    """Options of ``deep_fusion_gru``: the two checkpoints, from which all sizes come.

    The model raises ValueError for a size that is given beside them.
    """

    # the sizes of the base class are never None, here None says: as in the translation model
    translation_model: Optional[str] = field(
        default=None,
        metadata={"help": "checkpoint of a multiway_gru that translates the pairs of the run"},
    )
    language_model: Optional[str] = field(
        default=None,
        metadata={"help": "checkpoint of a gru_lm over the dictionary of the target language"},
    )
    embed_dim: Optional[int] = _inherited("D, width of embeddings")  # type: ignore[assignment]
    hidden_size: Optional[int] = _inherited(  # type: ignore[assignment]
        "H, number of GRU units of the decoder"
    )
    encoder_hidden_size: Optional[str] = _inherited("number of GRU units of the encoders")
    encoder_type: Optional[str] = _inherited("type of the encoders")
    context_size: Optional[int] = _inherited(  # type: ignore[assignment]
        "A, width of annotations and attention"
    )
    readout_size: Optional[int] = _inherited(  # type: ignore[assignment]
        "O, number of tanh units before the softmax"
    )
    init_hidden_size: Optional[int] = _inherited(  # type: ignore[assignment]
        "width of the hidden layer of the initialiser"
    )
    init_size: Optional[int] = _inherited(  # type: ignore[assignment]
        "width of the output of the initialiser"
    )
    dropout: Optional[float] = field(  # type: ignore[assignment]
        default=None,
        metadata={
            "help": f"dropout rate on embeddings and on the readout (default: that of "
            f"{TRANSLATION}); the language model has none here"
        },
    )
    language_model_size: Optional[str] = field(
        default=None,
        metadata={
            "help": "D,L of the language model. A run writes this into its checkpoints, which then "
            "need neither of the two models; do not set it"
        },
    )


def read_checkpoint(option: str, path: str, architecture: str) -> Stored:
    """Return the checkpoint at ``path``; ValueError if it is missing or of another architecture."""
    stored = read_stored(option, path)
    if stored.architecture != architecture:
        raise stored.error(f"holds a {stored.model._name}; it must be a {architecture}")
    return stored


def check_dictionary(
    stored: Stored, prefix: str, file: str, lang: str, dictionary: Dictionary
) -> None:
    """Raise ValueError unless the embedding under ``prefix`` was trained with this dictionary."""
    # V is the first axis of an embedding; sizes are compared before the symbols
    size = stored.weights[f"{prefix}.embedding.weight"].size(0)
    if size != len(dictionary):
        raise stored.error(
            f"has {size} words, dict.{lang}.txt of the run's data has {len(dictionary)}; both "
            "models must be trained with the same dictionary"
        )
    check_symbols(stored, file, lang, dictionary)


class TrainedModels:
    """The translation model and the language model that a run starts from.

    Args:
        cfg: its options.
        pairs: those of the run.
        dictionaries: {lang: dictionary}.

    Attributes:
        values: {option: value} that the two checkpoints settle.

    Raises ValueError, naming the option, for a missing checkpoint or one that does not fit.
    """

    def __init__(
        self, cfg: DeepFusionConfig, pairs: List[str], dictionaries: Dict[str, Dictionary]
    ):
        self.sources, targets = sides(pairs)
        self.target = _only_target(pairs, targets)
        translation, language = _checkpoints(cfg)
        self.translation = read_checkpoint(TRANSLATION, translation, "multiway_gru")
        self.language = read_checkpoint(LANGUAGE, language, "gru_lm")
        if self.language.task.get("add_bos_token"):
            # y_0 of modules.py is the end symbol, and nothing stands before it
            raise self.language.error(
                "was trained with --add-bos-token, whose texts begin with a symbol that a "
                "translation does not have; allowed: a model that was trained without it"
            )
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
        """Raise ValueError unless the translation model has all components, of these words."""
        components = [("encoders", lang) for lang in self.sources] + [("decoders", self.target)]
        for side, lang in components:
            if f"{side}.{lang}.embedding.weight" not in self.translation.weights:
                raise self.translation.error(
                    f"has no {side[:-1]} of {lang}; it translates "
                    f"{self.translation.model.lang_pairs}"
                )
            file = f"dict.{lang}.txt"
            check_dictionary(self.translation, f"{side}.{lang}", file, lang, dictionaries[lang])

    def _values(self, cfg: DeepFusionConfig) -> Dict[str, Any]:
        """Return {option: value} of the two models; ValueError where the run's option differs."""
        stored = self.translation.model
        values = {name: stored[name] for name in SIZES}
        for name, value in values.items():
            if cfg[name] not in (None, value):
                raise self.translation.error(
                    f"has {option_of(name)} {value}, the run's is {cfg[name]}; leave the option out"
                )
        units = {lang: self._encoder_units(lang) for lang in self.sources}
        # 0: not named by the option
        sizes = encoder_sizes(cfg.encoder_hidden_size, self.sources, 0)
        if cfg.encoder_hidden_size and any(sizes[lang] not in (0, units[lang]) for lang in units):
            raise self.translation.error(
                f"has encoders of {units} units, --encoder-hidden-size is "
                f"{cfg.encoder_hidden_size}; leave the option out"
            )
        values["encoder_hidden_size"] = ",".join(f"{lang}={n}" for lang, n in units.items())
        kinds = encoder_types(stored.get("encoder_type"), sides(stored_pairs(stored))[0])
        types = encoder_types(cfg.encoder_type, self.sources)
        if cfg.encoder_type and any(types[lang] != kinds[lang] for lang in self.sources):
            raise self.translation.error(
                f"has encoders of the types {kinds}, --encoder-type is {cfg.encoder_type}; leave "
                "the option out"
            )
        values["encoder_type"] = ",".join(f"{lang}={kinds[lang]}" for lang in self.sources)
        values["dropout"] = stored.dropout if cfg.dropout is None else cfg.dropout
        language = self.language.model
        values["language_model_size"] = f"{language.embed_dim},{language.hidden_size}"
        return values

    def _encoder_units(self, lang: str) -> int:
        """Return G of an encoder of the translation model."""
        # W_adp (A, 2G), which every type of encoder has
        return self.translation.weights[f"encoders.{lang}.adapt.weight"].size(1) // 2

    def weights_for(self, names: List[str]) -> Weights:
        """Return {name: value} of those parameters of the fused model that the two models have."""
        weights, prefix = {}, f"decoders.{self.target}.language."
        # the fused decoder and gru_lm call the part LanguageState, with the same names inside
        for name in names:
            if name.startswith(prefix):
                weights[name] = self.language.weights["decoder.language." + name[len(prefix) :]]
            elif name in self.translation.weights:
                weights[name] = self.translation.weights[name]
        # W_s, v_g and b_g are in neither of the two and keep the values that they begin with
        return weights


def _only_target(pairs: List[str], targets: List[str]) -> str:
    """Return the target language of all pairs; ValueError if there are several."""
    if len(targets) > 1:
        raise ValueError(
            f"--lang-pairs {','.join(pairs)}: there is one language model, of one language, but "
            f"these pairs have the targets {', '.join(targets)}"
        )
    return targets[0]


def _checkpoints(cfg: DeepFusionConfig) -> Tuple[str, str]:
    """Return the files of both models; ValueError unless both are named."""
    paths = {TRANSLATION: cfg.translation_model, LANGUAGE: cfg.language_model}
    missing = [option for option, path in paths.items() if not path]
    if not cfg.translation_model or not cfg.language_model:
        raise ValueError(
            f"{' and '.join(missing)}: not given; a deep_fusion_gru starts from the checkpoints of "
            "a trained multiway_gru and of a trained gru_lm"
        )
    return cfg.translation_model, cfg.language_model


def _check_complete(cfg: DeepFusionConfig) -> None:
    """Raise ValueError unless all sizes are there, as in the configuration that a run stores."""
    complete = all(cfg[name] is not None for name in (*SIZES, "dropout"))
    if not complete or not re.fullmatch(r"\d+,\d+", cfg.language_model_size or ""):
        raise ValueError(f"{NOT_TO_BE_GIVEN}; it is {cfg.language_model_size!r}")


def _settled(cfg: Any, values: Dict[str, Any]) -> DeepFusionConfig:
    """Return a copy of the configuration with the values that the two checkpoints settle."""
    # a copy of omegaconf keeps its parent, where interpolated options have their values
    settled = copy.copy(cfg)
    for name, value in values.items():
        settled[name] = value
    return settled


@register_model("deep_fusion_gru", dataclass=DeepFusionConfig)
class DeepFusionModel(MultiwayModel):
    """``MultiwayModel`` with one target language, whose decoder also reads a language model.

    has_weights: whether any were loaded, from the two models or from a run's checkpoint.
    """

    has_weights = False
    # most of the model is not trained: nothing for the criterion twin
    build_backward = None  # type: ignore[assignment]

    @classmethod
    def build_model(cls, cfg: DeepFusionConfig, task: FairseqTask) -> "DeepFusionModel":
        """Return the model, from two models or, if a checkpoint gives the sizes, from nothing."""
        trained_models = None
        if cfg.language_model_size is not None:
            _check_complete(cfg)
        else:
            trained_models = TrainedModels(cfg, task.pairs, task.dictionaries)
            # from now on a checkpoint of this run is built without the two files
            carry_in_checkpoints(cfg, "model", trained_models.values)
            cfg = _settled(cfg, trained_models.values)
        # with random weights; those of the two models, or of a run's checkpoint, come next
        model = super().build_model(cfg, task)
        if trained_models:
            weights = trained_models.weights_for(list(model.state_dict()))
            model.load_state_dict({**model.state_dict(), **weights})
        # Sec. 4.2: only the readout, the softmax, W_s and the controller are trained
        trained = set(model.parameter_groups()["output"])
        for name, parameter in model.named_parameters():
            parameter.requires_grad_(name in trained)
        return model

    @classmethod
    def build_decoder(
        cls, cfg: DeepFusionConfig, vocab_size: int, padding_index: int
    ) -> FusedDecoder:
        """Return the decoder of the target language, with a language model inside."""
        assert cfg.language_model_size is not None  # build_model has settled it
        # D, L
        embed_dim, hidden_size = (int(number) for number in cfg.language_model_size.split(","))
        language_size = LanguageSize(embed_dim, hidden_size)
        return FusedDecoder(size_of(cfg), language_size, vocab_size, padding_index)

    def load_state_dict(self, *arguments: Any, **options: Any) -> Any:
        """Load weights as torch does, and note that there are some."""
        self.has_weights = True
        return super().load_state_dict(*arguments, **options)

    def forward(self, *arguments: Any, **options: Any) -> Any:
        """Return what ``MultiwayModel`` does; ValueError for a model without weights."""
        if not self.has_weights:
            raise ValueError(NOT_TO_BE_GIVEN)
        return super().forward(*arguments, **options)
