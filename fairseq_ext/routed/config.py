"""Options of the routed model and its baselines, and one named architecture per setting."""

from dataclasses import dataclass, field
from typing import List, Optional, Sequence, Tuple

from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from omegaconf import II

from ..common.architectures import architecture
from .modules import BidirectionalUnit, RoutedUnit, UnitStack
from .sequence import Size

SHARING = ("blocks", "layers")


@dataclass
class RoutedConfig(FairseqDataclass):
    sharing: ChoiceEnum(SHARING) = field(
        default="blocks",
        metadata={
            "help": "what tasks share: blocks of every unit, behind a router (the paper), or whole "
            "layers of GRUs (its baselines)"
        },
    )
    shared_blocks: int = field(
        default=3, metadata={"help": "n, shared blocks of a unit beside the task's (paper: 3)"}
    )
    encoder_layers: int = field(
        default=1,
        metadata={"help": "units of the encoder in each direction (paper: 1; baselines: 3)"},
    )
    decoder_layers: int = field(
        default=1, metadata={"help": "units of the decoder (paper: 1; baselines: 3)"}
    )
    shared_encoder_layers: Optional[int] = field(
        default=None,
        metadata={
            "help": "with --sharing layers: how many of the encoder's top layers all tasks share, "
            "the others are each task's own (default: all; partial sharing: 2)"
        },
    )
    shared_decoder_layers: Optional[int] = field(
        default=None, metadata={"help": "the same of the decoder (default: all; partial: 1)"}
    )
    embed_dim: int = field(default=400, metadata={"help": "D, width of embeddings"})
    hidden_size: int = field(
        default=400, metadata={"help": "H, units of a block or of a GRU (paper: 400)"}
    )
    attention_size: int = field(
        default=400, metadata={"help": "A, units of the attention (paper: 400)"}
    )
    router_size: int = field(
        default=0, metadata={"help": "R, units of the router; 0 = --hidden-size"}
    )
    dropout: float = field(
        default=0.5,
        metadata={"help": "on embeddings, between layers and on the readout (paper: 0.5)"},
    )
    lang_pairs: Optional[str] = II("task.lang_pairs")


def size_of(cfg) -> Size:
    """The ``Size`` of a ``RoutedConfig`` (fairseq may hand it over as another type)."""
    return Size(
        embed_dim=cfg.embed_dim,
        hidden_size=cfg.hidden_size,
        attention_size=cfg.attention_size,
        router_size=cfg.router_size,
        dropout=cfg.dropout,
    )


def layer_owners(
    option: str, layers: int, shared: Optional[int], tasks: Sequence[str]
) -> List[Optional[Sequence[str]]]:
    """For each layer from the bottom: the tasks, where each has its own, or None where it is one.

    option: "encoder" or "decoder". shared: how many of the top layers are shared; None = all.
    ValueError, naming the option, for a number out of range.
    """
    if layers < 1:
        raise ValueError(f"--{option}-layers {layers}: must be at least 1")
    shared = layers if shared is None else shared
    if not 0 <= shared <= layers:
        raise ValueError(
            f"--shared-{option}-layers {shared}: must be between 0 and --{option}-layers, {layers}"
        )
    return [tasks] * (layers - shared) + [None] * shared


def build_units(cfg, tasks: Sequence[str]) -> Tuple[UnitStack, List[RoutedUnit]]:
    """The encoder's and the decoder's units.

    Raises ValueError, naming the option, for sizes out of range and for --shared-encoder-layers and
    --shared-decoder-layers with --sharing blocks. With --sharing layers, --shared-blocks and
    --router-size are not looked at.
    """
    size, blocks = size_of(cfg), 0
    layers = {"encoder": cfg.encoder_layers, "decoder": cfg.decoder_layers}
    shared = {"encoder": cfg.shared_encoder_layers, "decoder": cfg.shared_decoder_layers}
    if str(cfg.sharing) == "blocks":
        blocks = cfg.shared_blocks
        if blocks < 1:
            raise ValueError(
                f"--shared-blocks {blocks}: must be at least 1 (--sharing layers has none)"
            )
        for part, number in shared.items():
            if number is not None:
                raise ValueError(
                    f"--shared-{part}-layers {number}: only with --sharing layers; with --sharing "
                    "blocks every layer is shared in part"
                )
        shared = {"encoder": 0, "decoder": 0}
    owners = {part: layer_owners(part, layers[part], shared[part], tasks) for part in layers}
    options = dict(shared_blocks=blocks, router_size=size.router_size or None)
    inputs, encoder = size.embed_dim, []
    for own in owners["encoder"]:
        encoder.append(BidirectionalUnit(inputs, size.hidden_size, tasks=own, **options))
        inputs = encoder[-1].output_size
    inputs, decoder = size.embed_dim + inputs, []
    for own in owners["decoder"]:
        decoder.append(RoutedUnit(inputs, size.hidden_size, tasks=own, **options))
        inputs = decoder[-1].output_size
    return UnitStack(encoder, size.dropout), decoder


FULL = dict(sharing="layers", encoder_layers=3, decoder_layers=3)
PARTIAL = dict(**FULL, shared_encoder_layers=2, shared_decoder_layers=1)
SMALL = dict(embed_dim=200, hidden_size=200, attention_size=200, dropout=0.3)
TINY = dict(embed_dim=48, hidden_size=48, attention_size=48, dropout=0.0)


def register_architectures():
    """Called once the model class is registered."""
    for name, sharing in (("routed_gru", {}), ("mtl_full_gru", FULL), ("mtl_partial_gru", PARTIAL)):
        if sharing:
            architecture("routed_gru", name, **sharing)
        architecture("routed_gru", f"{name}_small", **sharing, **SMALL)
        architecture("routed_gru", f"{name}_tiny", **sharing, **TINY)
