"""Options of the Duo classifier, and its baselines as named architectures."""

from dataclasses import dataclass, field

from fairseq.dataclass import ChoiceEnum

from ...common.architectures import architecture
from ..config import EmbeddingsConfig
from .modules import ATTENTIONS, METHODS


@dataclass
class DuoClassifierConfig(EmbeddingsConfig):
    """Options of ``duo_classifier``, for the task ``text_classification``."""

    meta_embedding: ChoiceEnum(METHODS) = field(
        default="duo",
        metadata={
            "help": "duo applies Eq. 1 - 3 to S and P, single to S and S; average and "
            "concatenation apply them to one set made of both; mean-mlp feeds the mean of the "
            "vectors to one hidden layer"
        },
    )
    duo_attention: ChoiceEnum(ATTENTIONS) = field(
        default="softmax",
        metadata={"help": "attention over words (Eq. 1, 2); linear omits the softmax (Sec. 3.1.2)"},
    )
    ffn_embed_dim: int = field(
        default=600, metadata={"help": "d_ff, width of the sentence embedding e (paper: 600)"}
    )
    train_embeddings: bool = field(
        default=False,
        metadata={
            "help": "train also the embeddings that come from files or that are frozen in the "
            "initial checkpoint (paper: frozen)"
        },
    )
    dropout: float = field(
        default=0.1,
        metadata={"help": "dropout rate on [a_P ; a_S] and e (paper: 0.1, as in the Transformer)"},
    )


def register_architectures() -> None:
    """Register the baselines; called once the model class is registered."""
    for method in METHODS[1:]:
        name = "duo_classifier_" + method.replace("-", "_")
        architecture("duo_classifier", name, meta_embedding=method)
