"""fairseq's ``transformer`` as a part of a model of several directions, with all its options."""

from argparse import Namespace
from types import SimpleNamespace

from fairseq.data import Dictionary
from fairseq.models import register_model_architecture
from fairseq.models.transformer import (
    TransformerModel,
    base_architecture,
    transformer_iwslt_de_en,
    transformer_wmt_en_de,
    transformer_wmt_en_de_big,
)

from ..common.architectures import refuse_adaptive_softmax

SIZES = {
    "": base_architecture,
    "_iwslt_de_en": transformer_iwslt_de_en,
    "_wmt_en_de": transformer_wmt_en_de,
    "_wmt_en_de_big": transformer_wmt_en_de_big,
}


def build_transformer(args: Namespace, source: Dictionary, target: Dictionary) -> TransformerModel:
    """Return fairseq's model; ValueError for --adaptive-softmax-cutoff, which gives no logits."""
    refuse_adaptive_softmax(args)
    # fairseq's model asks its task for the two dictionaries and nothing else
    dictionaries = SimpleNamespace(source_dictionary=source, target_dictionary=target)
    return TransformerModel.build_model(args, dictionaries)


def register_sizes(model: str) -> None:
    """Register the architectures of fairseq's sizes for a registered model."""
    for name, defaults in SIZES.items():
        register_model_architecture(model, f"{model}{name}")(defaults)
