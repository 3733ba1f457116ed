"""Options of model-level dual learning, and one named architecture per setting of the paper."""

from dataclasses import dataclass, field
from typing import Optional

from fairseq.dataclass import FairseqDataclass
from omegaconf import II

from ...common.architectures import architecture


@dataclass
class DualTransformerConfig(FairseqDataclass):
    """Options of ``dual_transformer``, the sizes of each component; named sizes set some of them.

    Lengths are in tokens, the end of the sentence included; the limits come from the task.
    """

    embed_dim: int = field(
        default=512,
        metadata={
            "help": "D, width of embeddings and states (paper: 256 for IWSLT, 1024 for WMT and "
            "NIST)"
        },
    )
    ffn_embed_dim: int = field(
        default=2048, metadata={"help": "width of the feed-forward layer (paper: 1024, 4096)"}
    )
    attention_heads: int = field(
        default=8, metadata={"help": "number of attention heads of phi^c_1 and phi^z"}
    )
    layers: int = field(
        default=6, metadata={"help": "number of blocks of each component (paper: 6)"}
    )
    dropout: float = field(
        default=0.1,
        metadata={
            "help": "dropout rate on the output of every sub-layer (paper: 0.1 for IWSLT, 0.3 "
            "otherwise)"
        },
    )
    attention_dropout: float = field(
        default=0.0, metadata={"help": "dropout rate on attention weights"}
    )
    activation_dropout: float = field(
        default=0.0, metadata={"help": "dropout rate inside the feed-forward layer"}
    )
    share_all_embeddings: bool = field(
        default=False,
        metadata={
            "help": "use one matrix for the embeddings and softmaxes of all components (needs a "
            "joined dictionary; the paper's setting for IWSLT and WMT) instead of one for each "
            "component"
        },
    )
    separate_softmax: bool = field(
        default=False,
        metadata={
            "help": "use a separate matrix for each component's softmax phi^h (the paper's setting "
            "for NIST) instead of the matrix of its embedding"
        },
    )
    normalize_before: bool = field(
        default=False,
        metadata={"help": "apply layer norm before each sub-layer instead of after it"},
    )
    lang_pairs: Optional[str] = II("task.lang_pairs")
    max_source_positions: int = II("task.max_source_positions")
    max_target_positions: int = II("task.max_target_positions")


def register_architectures() -> None:
    """Register the paper's settings, once the model class is registered."""
    architecture(
        "dual_transformer",
        "dual_transformer_tiny",
        embed_dim=64,
        ffn_embed_dim=128,
        attention_heads=4,
        layers=2,
    )
    architecture(
        "dual_transformer",
        "dual_transformer_iwslt_de_en",
        embed_dim=256,
        ffn_embed_dim=1024,
        attention_heads=4,
        layers=6,
    )
    architecture("dual_transformer", "dual_transformer_wmt_en_de")
    big = dict(embed_dim=1024, ffn_embed_dim=4096, attention_heads=16, layers=6, dropout=0.3)
    architecture("dual_transformer", "dual_transformer_wmt_en_de_big", **big)
    architecture("dual_transformer", "dual_transformer_nist_zh_en", **big)
