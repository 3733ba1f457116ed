"""Named architectures, criteria and modules have the papers' values, row by row.

A value that a refactoring changes is a wrong experiment that no other test sees: each is here once
more, with the place in the paper that it is from.
"""

import argparse
import dataclasses

import pytest
from fairseq.criterions import CRITERION_DATACLASS_REGISTRY
from fairseq.models import (
    ARCH_CONFIG_REGISTRY,
    ARCH_MODEL_NAME_REGISTRY,
    MODEL_DATACLASS_REGISTRY,
)

import fairseq_ext  # noqa: F401  (registers what is named here)
from fairseq_ext.multiway.deep_fusion.modules import LanguageSize
from fairseq_ext.multiway.modules import MultiwaySize
from fairseq_ext.routed.encoder_decoder import RoutedSize

BIG = {"embed_dim": 1024, "ffn_embed_dim": 4096, "attention_heads": 16, "layers": 6, "dropout": 0.3}
BASE = {"embed_dim": 512, "ffn_embed_dim": 2048, "attention_heads": 8, "layers": 6, "dropout": 0.1}
SMALL = {"embed_dim": 256, "ffn_embed_dim": 1024, "attention_heads": 4}
ROUTED = {"embed_dim": 400, "hidden_size": 400, "attention_size": 400, "dropout": 0.5}
STACKED = {**ROUTED, "sharing": "layers", "encoder_layers": 3, "decoder_layers": 3}
MULTIWAY = {
    "embed_dim": 620,
    "hidden_size": 1000,
    "context_size": 1200,
    "readout_size": 1000,
    "init_hidden_size": 500,
    "init_size": 600,
    "dropout": 0.0,
}
CAPTIONS = {"feature_size": 2048, "embed_dim": 512, "hidden_size": 512}

ARCHITECTURES = {
    # Xia et al. 2018, Sec. 3.2 and 4.2
    "dual_transformer_iwslt_de_en": {**BASE, **SMALL},
    "dual_transformer_wmt_en_de": BASE,
    "dual_transformer_wmt_en_de_big": BIG,
    "dual_transformer_nist_zh_en": BIG,
    "dual_lstm_classifier_imdb": {"embed_dim": 500, "hidden_size": 1024, "dropout": 0.5},
    "dual_supervised_lstm_classifier_imdb": {"embed_dim": 500, "hidden_size": 1024, "dropout": 0.5},
    # Duo, Sec. 4: base sizes with eight layers; a classifier of width 600
    "duo_transformer_wmt_en_de": {**BASE, "layers": 8},
    "duo_transformer_iwslt_de_en": {**BASE, "ffn_embed_dim": 1024, "attention_heads": 4},
    "duo_classifier": {"ffn_embed_dim": 600, "dropout": 0.1, "train_embeddings": False},
    # Serdyuk et al. 2018, Sec. 4
    "twin_lstm_lm_mnist": {"decoder_layers": 3, "decoder_hidden_size": 512, "dropout": 0.0},
    "twin_speech_lstm": {
        "encoder_hidden_size": 250,
        "hidden_size": 250,
        "time_reduction": "1,1,2,2",
    },
    "twin_caption_lstm": CAPTIONS,
    "twin_caption_attention": {**CAPTIONS, "attention_size": 512},
    # Zaremoodi et al. 2018, Sec. 3.3
    "routed_gru": {**ROUTED, "sharing": "blocks", "encoder_layers": 1, "decoder_layers": 1},
    "mtl_full_gru": STACKED,
    "mtl_partial_gru": {**STACKED, "shared_encoder_layers": 2, "shared_decoder_layers": 1},
    # Firat et al. 2016, Sec. 5.3
    "multiway_gru_wmt15": MULTIWAY,
    "multiway_gru": MULTIWAY,
    "gru_lm": {"embed_dim": 620, "hidden_size": 1000, "dropout": 0.0},
}
CRITERIA = {
    # Serdyuk et al. 2018, Sec. 4.1
    "twin": {"twin_weight": 1.5, "twin_target": "backward"},
}


def values_of(name):
    """{option: value} of an architecture without any options of the user."""
    dataclass = MODEL_DATACLASS_REGISTRY.get(ARCH_MODEL_NAME_REGISTRY[name])
    defaults = {} if dataclass is None else vars(dataclass())
    named = argparse.Namespace()
    ARCH_CONFIG_REGISTRY[name](named)
    return {**defaults, **vars(named)}


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_architecture(name):
    values = values_of(name)
    assert {option: values[option] for option in ARCHITECTURES[name]} == ARCHITECTURES[name]


@pytest.mark.parametrize("name", CRITERIA)
def test_criterion(name):
    values = vars(CRITERION_DATACLASS_REGISTRY[name]())
    assert {option: str(values[option]) for option in CRITERIA[name]} == {
        option: str(value) for option, value in CRITERIA[name].items()
    }


def test_sizes_of_modules():
    """Plain torch users get the same defaults."""
    assert dataclasses.asdict(MultiwaySize()) == MULTIWAY
    assert dataclasses.asdict(LanguageSize()) == {"embed_dim": 620, "hidden_size": 1000}
    assert dataclasses.asdict(RoutedSize()) == {**ROUTED, "router_size": 0}
