"""Options of multi-way translation, and one named architecture per setting of the paper."""

from dataclasses import dataclass, field
from typing import Dict, Iterable, Optional

from fairseq.dataclass import FairseqDataclass
from omegaconf import II

from ..common.architectures import architecture
from .modules import Size


@dataclass
class MultiwayConfig(FairseqDataclass):
    embed_dim: int = field(default=620, metadata={"help": "D, width of embeddings (paper: 620)"})
    hidden_size: int = field(
        default=1000, metadata={"help": "H, GRU units of every decoder (paper: 1000)"}
    )
    encoder_hidden_size: Optional[str] = field(
        default=None,
        metadata={
            "help": "GRU units of the encoders in each direction: one number, or LANG=NUMBER for "
            "some languages, e.g. de=1000,fi=500; others have --hidden-size (paper: 1000)"
        },
    )
    context_size: int = field(
        default=1200,
        metadata={"help": "A, width of annotations h and of the attention (paper: 1200)"},
    )
    readout_size: int = field(
        default=1000, metadata={"help": "O, tanh units before the softmax (paper: 1000)"}
    )
    init_hidden_size: int = field(
        default=500, metadata={"help": "hidden layer of the shared initialiser (Eq. 11)"}
    )
    init_size: int = field(
        default=600, metadata={"help": "I, output of the shared initialiser (Eq. 11)"}
    )
    dropout: float = field(
        default=0.0, metadata={"help": "on embeddings and on the readout (paper: 0)"}
    )
    lang_pairs: Optional[str] = II("task.lang_pairs")
    max_source_positions: int = II("task.max_source_positions")
    max_target_positions: int = II("task.max_target_positions")


def size_of(cfg) -> Size:
    """The ``Size`` of a ``MultiwayConfig`` (fairseq may hand it over as another type)."""
    return Size(
        embed_dim=cfg.embed_dim,
        hidden_size=cfg.hidden_size,
        context_size=cfg.context_size,
        readout_size=cfg.readout_size,
        init_hidden_size=cfg.init_hidden_size,
        init_size=cfg.init_size,
        dropout=cfg.dropout,
    )


def encoder_sizes(text: Optional[str], langs: Iterable[str], default: int) -> Dict[str, int]:
    """--encoder-hidden-size -> {source language: units}.

    Raises ValueError for a language that is no source of the model, or no positive number.
    """
    langs = list(langs)
    sizes = dict.fromkeys(langs, default)
    # a number for all comes first, wherever it stands
    for part in sorted((text or "").split(","), key=lambda part: "=" in part):
        lang, equals, number = (part if "=" in part else f"={part}").strip().partition("=")
        if not number and not equals or part == "":
            continue
        if not number.isdecimal() or int(number) < 1:
            raise ValueError(
                f"--encoder-hidden-size {text!r}: {part!r} is neither a positive number nor "
                "LANG=NUMBER"
            )
        if lang and lang not in sizes:
            raise ValueError(
                f"--encoder-hidden-size {text!r}: {lang!r} is not a source language of the "
                f"model; these are: {', '.join(langs)}"
            )
        sizes.update({one: int(number) for one in ([lang] if lang else langs)})
    return sizes


def register_architectures():
    """Called once the model class is registered."""
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
