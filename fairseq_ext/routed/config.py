"""Options of the routed model and its baselines, and one named architecture per setting."""

from dataclasses import dataclass, field
from typing import Any, Dict, Optional

from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from omegaconf import II

from ..common.architectures import architecture
from .encoder_decoder import RoutedSize

SHARING = ("blocks", "layers")
SHARED_BLOCKS = 3  # n


@dataclass
class RoutedConfig(FairseqDataclass):
    """Options of the routed model and its baselines.

    ``check_sharing`` raises ValueError for those that contradict each other.
    """

    sharing: ChoiceEnum(SHARING) = field(
        default="blocks",
        metadata={
            "help": "what the tasks share: blocks of every unit behind a router (the paper), or "
            "whole GRU layers (its baselines)"
        },
    )
    shared_blocks: Optional[int] = field(
        default=None,
        metadata={
            "help": "n, number of shared blocks of a unit beside the task's block (default and "
            "paper: 3)"
        },
    )
    encoder_layers: int = field(
        default=1,
        metadata={
            "help": "number of layers of the encoder in each direction (paper: 1; baselines: 3)"
        },
    )
    decoder_layers: int = field(
        default=1, metadata={"help": "number of layers of the decoder (paper: 1; baselines: 3)"}
    )
    shared_encoder_layers: Optional[int] = field(
        default=None,
        metadata={
            "help": "with --sharing layers: number of the encoder's top layers that all tasks "
            "share; each task has its own copy of the others (default: all; partial sharing: 2)"
        },
    )
    shared_decoder_layers: Optional[int] = field(
        default=None,
        metadata={
            "help": "with --sharing layers: number of the decoder's top layers that all tasks "
            "share (default: all; partial sharing: 1)"
        },
    )
    embed_dim: int = field(default=400, metadata={"help": "D, width of embeddings"})
    hidden_size: int = field(
        default=400, metadata={"help": "H, number of units of a block or of a GRU (paper: 400)"}
    )
    attention_size: int = field(
        default=400, metadata={"help": "A, number of units of the attention (paper: 400)"}
    )
    router_size: int = field(
        default=0, metadata={"help": "R, number of units of the router; 0 = --hidden-size"}
    )
    dropout: float = field(
        default=0.5,
        metadata={
            "help": "dropout rate on embeddings, between layers and on the readout (paper: 0.5)"
        },
    )
    lang_pairs: Optional[str] = II("task.lang_pairs")
    max_source_positions: int = II("task.max_source_positions")
    max_target_positions: int = II("task.max_target_positions")


def size_of(cfg: RoutedConfig) -> RoutedSize:
    """Return the sizes of a config, which fairseq may hand over as another type."""
    return RoutedSize(
        embed_dim=cfg.embed_dim,
        hidden_size=cfg.hidden_size,
        attention_size=cfg.attention_size,
        router_size=cfg.router_size,
        dropout=cfg.dropout,
    )


def check_sharing(cfg: RoutedConfig) -> None:
    """Raise ValueError, naming the option, for what --sharing layers has no use for.

    Stored configurations are not checked: older checkpoints hold values that were never read.
    """
    # 0, the default, is no value that somebody gave
    options = {"--shared-blocks": cfg.shared_blocks, "--router-size": cfg.router_size or None}
    for option, value in options.items():
        if str(cfg.sharing) == "layers" and value is not None:
            raise ValueError(
                f"{option} {value}: does nothing with --sharing layers (mtl_full_gru, "
                "mtl_partial_gru), which has no shared blocks and no router; leave it out"
            )


FULL: Dict[str, Any] = dict(sharing="layers", encoder_layers=3, decoder_layers=3)
PARTIAL: Dict[str, Any] = dict(**FULL, shared_encoder_layers=2, shared_decoder_layers=1)
SMALL = dict(embed_dim=200, hidden_size=200, attention_size=200, dropout=0.3)
TINY = dict(embed_dim=48, hidden_size=48, attention_size=48, dropout=0.0)


# {name: what the tasks share}; each is also there as NAME_small and NAME_tiny
ARCHITECTURES: Dict[str, Dict[str, Any]] = {
    "routed_gru": {},
    "mtl_full_gru": FULL,
    "mtl_partial_gru": PARTIAL,
}


def register_architectures() -> None:
    """Register the named architectures; the model class has to be registered before."""
    for name, sharing in ARCHITECTURES.items():
        if sharing:  # "routed_gru" itself is the model's name
            architecture("routed_gru", name, **sharing)
        architecture("routed_gru", f"{name}_small", **sharing, **SMALL)
        architecture("routed_gru", f"{name}_tiny", **sharing, **TINY)
