"""What layers for fairseq 0.9 read of those that they derive from."""

from argparse import Namespace

import pytest
import torch
from fairseq.models.transformer import TransformerEncoder, base_architecture
from fairseq.modules import (
    LearnedPositionalEmbedding,
    MultiheadAttention,
    SinusoidalPositionalEmbedding,
    TransformerEncoderLayer,
)


def options(**changed):
    args = Namespace(dropout=0.3, encoder_embed_dim=8, encoder_layers=1, **changed)
    base_architecture(args)
    args.max_source_positions = 20
    return args


@pytest.mark.parametrize(
    "embedding", [LearnedPositionalEmbedding(12, 8, 1), SinusoidalPositionalEmbedding(8, 1, 12)]
)
def test_limits_are_read_and_called(embedding):
    limit = 10 if isinstance(embedding, LearnedPositionalEmbedding) else 100000
    assert embedding.max_positions == embedding.max_positions() == limit
    assert torch.jit.script(embedding).max_positions == limit


def test_rates_of_dropout():
    layer = TransformerEncoderLayer(options(activation_dropout=0.2))
    assert (layer.dropout, layer.activation_dropout) == (0.3, 0.2)
    assert MultiheadAttention(8, 2, dropout=0.5).dropout == 0.5
    table = torch.nn.Embedding(5, 8, padding_idx=1)
    assert TransformerEncoder(options(), None, table).dropout == 0.3


@pytest.mark.parametrize("assigned", [0.7, torch.nn.Dropout(0.7)])
def test_what_a_class_assigns_counts_first(assigned):
    layer = TransformerEncoderLayer(options())
    layer.dropout = assigned
    assert layer.dropout is assigned


@pytest.mark.parametrize("before", [True, False])
def test_normalising_before_or_after(before):
    layer = TransformerEncoderLayer(options(encoder_normalize_before=before))
    for place in ("before", "after"):
        normed = layer.maybe_layer_norm(torch.neg, torch.ones(1), **{place: True})
        assert normed.item() == (-1 if before == (place == "before") else 1)
    with pytest.raises(ValueError):
        layer.maybe_layer_norm(torch.neg, torch.ones(1))
