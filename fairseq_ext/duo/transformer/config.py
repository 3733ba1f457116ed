"""Options of the Duo Transformer, and its named architectures."""

from dataclasses import dataclass, field
from typing import Optional

from fairseq.dataclass import ChoiceEnum
from omegaconf import II

from ...common.architectures import architecture
from ..config import WIDTH, EmbeddingsConfig
from .layer import NORMS

SWITCH = ChoiceEnum(["on", "off"])


@dataclass
class DuoTransformerConfig(EmbeddingsConfig):
    """Options of ``duo_transformer``: the files of vectors, the parts of Table 6, and the sizes.

    Lengths are in tokens, the end of the sentence included; the limits come from the task.
    """

    target_embed_path_s: Optional[str] = field(
        default=None, metadata={"help": "file of vectors S of the target language"}
    )
    target_embed_path_p: Optional[str] = field(
        default=None, metadata={"help": "file of vectors P of the target language"}
    )
    target_embed_dim_s: Optional[int] = field(
        default=None, metadata={"help": WIDTH.format("S of the target language", "--embed-dim")}
    )
    target_embed_dim_p: Optional[int] = field(
        default=None, metadata={"help": WIDTH.format("P of the target language", "--embed-dim")}
    )
    freeze_embeddings: bool = field(
        default=False,
        metadata={
            "help": "freeze embeddings that come from files or that are frozen in the initial "
            "checkpoint"
        },
    )
    share_all_embeddings: bool = field(
        default=False,
        metadata={"help": "use one S and one P for both languages (needs a joined dictionary)"},
    )
    duo_meta_embeddings: SWITCH = field(
        default="on",
        metadata={"help": "use two embeddings and two streams (Eq. 4, 5) instead of one"},
    )
    duo_share_kv: SWITCH = field(
        default="on",
        metadata={"help": "use one projection for K and V of the same embedding (Sec. 3.2.1)"},
    )
    duo_norm: ChoiceEnum(NORMS) = field(
        default="decoder",
        metadata={
            "help": "where to use duo normalisation (Eq. 6, x_S' = LN(x_S + A_P)): in the decoder "
            "(Sec. 3.4), in all layers, or nowhere"
        },
    )
    duo_fusion: SWITCH = field(
        default="on",
        metadata={
            "help": "use the fusion W_F [h_S ; h_P] and the output matrix [E_S ; E_P] W_out "
            "(Sec. 3.3)"
        },
    )
    embed_dim: int = field(default=512, metadata={"help": "D, width of the states (paper: 512)"})
    ffn_embed_dim: int = field(
        default=2048, metadata={"help": "width of the feed-forward layer (paper: 2048)"}
    )
    attention_heads: int = field(
        default=8, metadata={"help": "number of heads of each stream's attention"}
    )
    layers: int = field(
        default=6,
        metadata={"help": "number of layers of the encoder and of the decoder, each (paper: 8)"},
    )
    dropout: float = field(
        default=0.1,
        metadata={
            "help": "dropout rate on the output of every sub-layer and on embeddings (paper: 0.1)"
        },
    )
    attention_dropout: float = field(
        default=0.0, metadata={"help": "dropout rate on attention weights"}
    )
    activation_dropout: float = field(
        default=0.0, metadata={"help": "dropout rate inside the feed-forward layer"}
    )
    max_source_positions: int = II("task.max_source_positions")
    max_target_positions: int = II("task.max_target_positions")


def register_architectures() -> None:
    """Register the named sizes; called once the model class is registered."""
    model = "duo_transformer"
    tiny = dict(embed_dim=64, ffn_embed_dim=128, attention_heads=4, layers=2)
    architecture(model, "duo_transformer_tiny", **tiny)
    iwslt = dict(embed_dim=512, ffn_embed_dim=1024, attention_heads=4, layers=6)
    architecture(model, "duo_transformer_iwslt_de_en", **iwslt)
    architecture(model, "duo_transformer_wmt_en_de", layers=8)
