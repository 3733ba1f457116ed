"""Options of the routed model and its baselines, and one named architecture per setting."""

from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional, Sequence, Tuple

from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from omegaconf import II

from ..common.architectures import architecture
from .modules import BidirectionalUnit, RoutedUnit, UnitStack
from .sequence import RoutedSize

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


def layer_owners(
    option: str, layers: int, shared: Optional[int], tasks: Sequence[str]
) -> List[Optional[Sequence[str]]]:
    """Return the owners of each layer from the bottom: the tasks, or None where all share it.

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
    # the bottom ones belong to the tasks
    return [tasks] * (layers - shared) + [None] * shared


def build_units(cfg: RoutedConfig, tasks: Sequence[str]) -> Tuple[UnitStack, List[RoutedUnit]]:
    """Return the encoder's and the decoder's units.

    Raises ValueError, naming the option, for sizes out of range and for --shared-encoder-layers and
    --shared-decoder-layers with --sharing blocks. With --sharing layers, --shared-blocks and
    --router-size are not read: see ``check_sharing``.
    """
    size, blocks = size_of(cfg), 0
    layers = {"encoder": cfg.encoder_layers, "decoder": cfg.decoder_layers}
    shared = {"encoder": cfg.shared_encoder_layers, "decoder": cfg.shared_decoder_layers}
    if str(cfg.sharing) == "blocks":
        blocks = SHARED_BLOCKS if cfg.shared_blocks is None else cfg.shared_blocks
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
        # every unit has a block for each task
        shared = {"encoder": 0, "decoder": 0}
    owners = {part: layer_owners(part, layers[part], shared[part], tasks) for part in layers}
    options: Dict[str, Any] = dict(shared_blocks=blocks, router_size=size.router_size or None)
    encoder: List[BidirectionalUnit] = []
    decoder: List[RoutedUnit] = []
    # a layer reads the state of the one below it; the decoder's first one also the context
    inputs = size.embed_dim
    for tasks_of_layer in owners["encoder"]:
        encoder.append(BidirectionalUnit(inputs, size.hidden_size, tasks=tasks_of_layer, **options))
        inputs = encoder[-1].output_size
    # [E y_{t-1} ; c_t] (Eq. 13); c is as wide as an annotation
    inputs += size.embed_dim
    for tasks_of_layer in owners["decoder"]:
        decoder.append(RoutedUnit(inputs, size.hidden_size, tasks=tasks_of_layer, **options))
        inputs = decoder[-1].output_size
    return UnitStack(encoder, size.dropout), decoder


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
