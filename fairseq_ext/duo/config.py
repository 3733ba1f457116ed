"""Options of the Duo Transformer and the Duo classifier, and their named architectures."""

from dataclasses import dataclass, field
from typing import Optional

from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from omegaconf import II

from ..common.architectures import architecture
from .classifier_modules import ATTENTIONS, METHODS
from .modules import NORMS

SWITCH = ChoiceEnum(["on", "off"])
WIDTH = "width of {}; default: the file's, without a file {}"


@dataclass
class EmbeddingsConfig(FairseqDataclass):
    """The two sets of vectors; a file is .txt (GloVe), .vec (word2vec, fastText), .bin, or gzip."""

    embed_path_s: Optional[str] = field(
        default=None, metadata={"help": "file of pre-trained vectors S; default: learnt"}
    )
    embed_path_p: Optional[str] = field(
        default=None, metadata={"help": "file of pre-trained vectors P; default: learnt"}
    )
    embed_dim_s: Optional[int] = field(
        default=None, metadata={"help": "d1, " + WIDTH.format("S", "--embed-dim (classifier: 300)")}
    )
    embed_dim_p: Optional[int] = field(
        default=None, metadata={"help": "d2, " + WIDTH.format("P", "--embed-dim (classifier: 300)")}
    )


@dataclass
class DuoTransformerConfig(EmbeddingsConfig):
    target_embed_path_s: Optional[str] = field(
        default=None, metadata={"help": "file of S of the target language"}
    )
    target_embed_path_p: Optional[str] = field(
        default=None, metadata={"help": "file of P of the target language"}
    )
    target_embed_dim_s: Optional[int] = field(
        default=None, metadata={"help": WIDTH.format("S of the target language", "--embed-dim")}
    )
    target_embed_dim_p: Optional[int] = field(
        default=None, metadata={"help": WIDTH.format("P of the target language", "--embed-dim")}
    )
    freeze_embeddings: bool = field(
        default=False, metadata={"help": "leave embeddings that come from files as they are"}
    )
    share_all_embeddings: bool = field(
        default=False,
        metadata={"help": "one S and one P for both languages (needs a joined dictionary)"},
    )
    duo_meta_embeddings: SWITCH = field(
        default="on", metadata={"help": "two embeddings and two streams (Eq. 4, 5) instead of one"}
    )
    duo_share_kv: SWITCH = field(
        default="on",
        metadata={"help": "one projection for K and V of the same embedding (Sec. 3.2.1)"},
    )
    duo_norm: ChoiceEnum(NORMS) = field(
        default="decoder",
        metadata={
            "help": "Eq. 6, x_S' = LN(x_S + A_P): in the decoder (Sec. 3.4), in all layers, or off"
        },
    )
    duo_fusion: SWITCH = field(
        default="on",
        metadata={"help": "W_F [h_S ; h_P] and the output matrix [E_S ; E_P] W_out (Sec. 3.3)"},
    )
    embed_dim: int = field(default=512, metadata={"help": "D, width of the states (paper: 512)"})
    ffn_embed_dim: int = field(
        default=2048, metadata={"help": "width of the feed-forward layer (paper: 2048)"}
    )
    attention_heads: int = field(default=8, metadata={"help": "heads of each stream's attention"})
    layers: int = field(
        default=6, metadata={"help": "layers of the encoder, and of the decoder (paper: 8)"}
    )
    dropout: float = field(
        default=0.1, metadata={"help": "on every sub-layer's output and on embeddings (paper: 0.1)"}
    )
    attention_dropout: float = field(default=0.0, metadata={"help": "on attention weights"})
    activation_dropout: float = field(
        default=0.0, metadata={"help": "inside the feed-forward layer"}
    )
    max_source_positions: int = II("task.max_source_positions")
    max_target_positions: int = II("task.max_target_positions")


@dataclass
class DuoClassifierConfig(EmbeddingsConfig):
    meta_embedding: ChoiceEnum(METHODS) = field(
        default="duo",
        metadata={
            "help": "duo: Eq. 1 - 3 of S and P; single: of S and S; average, concatenation: of one "
            "set made of both; mean-mlp: mean of the vectors, then one hidden layer"
        },
    )
    duo_attention: ChoiceEnum(ATTENTIONS) = field(
        default="softmax",
        metadata={"help": "over words (Eq. 1, 2); linear leaves the softmax out (Sec. 3.1.2)"},
    )
    ffn_embed_dim: int = field(
        default=600, metadata={"help": "d_ff, width of the sentence embedding e (paper: 600)"}
    )
    train_embeddings: bool = field(
        default=False, metadata={"help": "train embeddings from files too (paper: frozen)"}
    )
    dropout: float = field(
        default=0.1, metadata={"help": "on [a_P ; a_S] and e (paper: as the Transformer, 0.1)"}
    )


def register_transformers():
    """Called once the model class is registered."""
    model = "duo_transformer"
    tiny = dict(embed_dim=64, ffn_embed_dim=128, attention_heads=4, layers=2)
    architecture(model, "duo_transformer_tiny", **tiny)
    iwslt = dict(embed_dim=512, ffn_embed_dim=1024, attention_heads=4, layers=6)
    architecture(model, "duo_transformer_iwslt_de_en", **iwslt)
    architecture(model, "duo_transformer_wmt_en_de", layers=8)


def register_classifiers():
    """Called once the model class is registered."""
    for method in METHODS[1:]:
        name = "duo_classifier_" + method.replace("-", "_")
        architecture("duo_classifier", name, meta_embedding=method)
