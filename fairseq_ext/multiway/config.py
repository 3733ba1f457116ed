"""Options of multi-way translation, and one named architecture per setting of the paper."""

from dataclasses import dataclass, field
from typing import Callable, Dict, Iterable, List, Optional, TypeVar

from fairseq.dataclass import FairseqDataclass
from omegaconf import II

from ..common.architectures import architecture
from ..common.named_values import entries
from .encoders import ENCODERS
from .modules import MultiwaySize

T = TypeVar("T")


@dataclass
class MultiwayConfig(FairseqDataclass):
    """Options of ``multiway_gru``; the defaults are the sizes of the paper.

    Lengths are in tokens, the end of the sentence included; the limits come from the task.
    """

    embed_dim: int = field(default=620, metadata={"help": "D, width of embeddings (paper: 620)"})
    hidden_size: int = field(
        default=1000, metadata={"help": "H, number of GRU units of every decoder (paper: 1000)"}
    )
    encoder_hidden_size: Optional[str] = field(
        default=None,
        metadata={
            "help": "number of GRU units of the encoders in each direction: one number, or "
            "LANG=NUMBER for some languages, e.g. de=1000,fi=500; the others use --hidden-size "
            "(paper: 1000)"
        },
    )
    encoder_type: Optional[str] = field(
        default=None,
        metadata={
            "help": "type of the encoders: gru (the paper's), lstm or convolution; one for all, or "
            "LANG=TYPE for some languages, e.g. fi=convolution; the others use gru"
        },
    )
    context_size: int = field(
        default=1200,
        metadata={"help": "A, width of annotations h and of the attention (paper: 1200)"},
    )
    readout_size: int = field(
        default=1000, metadata={"help": "O, number of tanh units before the softmax (paper: 1000)"}
    )
    init_hidden_size: int = field(
        default=500,
        metadata={"help": "width of the hidden layer of the shared initialiser (Eq. 11)"},
    )
    init_size: int = field(
        default=600, metadata={"help": "I, width of the output of the shared initialiser (Eq. 11)"}
    )
    dropout: float = field(
        default=0.0, metadata={"help": "dropout rate on embeddings and on the readout (paper: 0)"}
    )
    lang_pairs: Optional[str] = II("task.lang_pairs")
    max_source_positions: int = II("task.max_source_positions")
    max_target_positions: int = II("task.max_target_positions")


def size_of(cfg: MultiwayConfig) -> MultiwaySize:
    """Return the sizes of the options (fairseq may hand these over as another type)."""
    return MultiwaySize(
        embed_dim=cfg.embed_dim,
        hidden_size=cfg.hidden_size,
        context_size=cfg.context_size,
        readout_size=cfg.readout_size,
        init_hidden_size=cfg.init_hidden_size,
        init_size=cfg.init_size,
        dropout=cfg.dropout,
    )


def encoder_sizes(text: Optional[str], langs: Iterable[str], default: int) -> Dict[str, int]:
    """Return {source language: units} of --encoder-hidden-size.

    Raises ValueError for a language that is no source of the model, or no positive number.
    """

    def units(number: str) -> int:
        if not number.isdecimal() or int(number) < 1:
            raise ValueError("is neither a positive number nor LANG=NUMBER")
        return int(number)

    return _by_language("--encoder-hidden-size", text, list(langs), default, units)


def encoder_types(
    text: Optional[str], langs: Iterable[str], default: str = "gru"
) -> Dict[str, str]:
    """Return {source language: name in ``ENCODERS``} of --encoder-type.

    Raises ValueError for a language that is no source of the model, or another type.
    """

    def kind(name: str) -> str:
        if name not in ENCODERS:
            raise ValueError(f"is neither one of {', '.join(ENCODERS)} nor LANG=TYPE")
        return name

    return _by_language("--encoder-type", text, list(langs), default, kind)


def _by_language(
    option: str, text: Optional[str], langs: List[str], default: T, read: Callable[[str], T]
) -> Dict[str, T]:
    """Return {language: value} of VALUE,LANG=VALUE,...; ``read`` raises ValueError.

    Raises ValueError also for a language that is there twice, and a value that no language takes.
    """
    values, seen = dict.fromkeys(langs, default), set()
    # a value for all comes first, wherever it stands
    for part in sorted(entries(text), key=lambda entry: "=" in entry):
        lang, _, word = (piece.strip() for piece in part.rpartition("="))
        try:
            value = read(word)
        except ValueError as error:
            raise ValueError(f"{option} {text!r}: {part!r} {error}") from error
        if lang and lang not in values:
            raise ValueError(
                f"{option} {text!r}: {lang!r} is not a source language of the model; these are: "
                f"{', '.join(langs)}"
            )
        if lang in seen:
            raise ValueError(f"{option} {text!r}: {lang or 'the value of all'} is there twice")
        if not langs:
            raise ValueError(f"{option} {text!r}: there is no encoder that would take it")
        seen.add(lang)
        values.update({name: value for name in ([lang] if lang else langs)})
    return values


def register_architectures() -> None:
    """Register the named sizes; called once the model class is registered."""
    architecture("multiway_gru", "multiway_gru_wmt15")
    architecture(
        "multiway_gru",
        "multiway_gru_tiny",
        embed_dim=64,
        hidden_size=96,
        context_size=96,
        readout_size=96,
        init_hidden_size=48,
        init_size=48,
    )
