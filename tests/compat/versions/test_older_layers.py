"""What layers for fairseq 0.9 read of those that they derive from."""

from argparse import Namespace

import pytest
import torch
from fairseq import utils
from fairseq.data import Dictionary
from fairseq.models import FairseqIncrementalDecoder
from fairseq.models.transformer import TransformerDecoder, TransformerEncoder, base_architecture
from fairseq.models.transformer.transformer_config import TransformerConfig
from fairseq.modules import (
    LearnedPositionalEmbedding,
    MultiheadAttention,
    SinusoidalPositionalEmbedding,
    TransformerDecoderLayer,
    TransformerEncoderLayer,
    TransformerSentenceEncoder,
)
from omegaconf import OmegaConf


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


class OlderDecoder(TransformerDecoder):
    """A decoder for fairseq 0.9 with an output of its own."""

    def output_layer(self, features, **kwargs):
        return torch.nn.functional.linear(features, self.embed_out)


class OwnOutput(OlderDecoder):
    """One that has the parameter itself."""

    def __init__(self, *args):
        super().__init__(*args)
        self.embed_out = torch.nn.Parameter(torch.ones(len(args[1]), 8))


def decoder(kind, **changed):
    args = options(**changed)
    args.decoder_layers, args.max_target_positions = 1, 20
    return kind(args, Dictionary(), torch.nn.Embedding(len(Dictionary()), 8, padding_idx=1))


def test_the_weight_of_the_output():
    states = torch.rand(2, 3, 8)
    older, present = decoder(OlderDecoder), decoder(TransformerDecoder)
    assert older.embed_out is older.output_projection.weight
    assert set(older.state_dict()) == set(present.state_dict())
    older.load_state_dict(present.state_dict())
    assert torch.equal(older.output_layer(states), present.output_layer(states))
    owner = decoder(OwnOutput)
    assert torch.equal(owner.embed_out, torch.ones(len(Dictionary()), 8))
    assert "embed_out" in owner.state_dict()
    adaptive = decoder(OlderDecoder, adaptive_softmax_cutoff="2,3")
    with pytest.raises(AttributeError, match="has no attribute 'embed_out'"):
        adaptive.embed_out  # noqa: B018


class OlderAttention(MultiheadAttention):
    """Attention for fairseq 0.10 that asks whether it is on a TPU."""

    def forward(self, query, key, value, **options):
        if self.tpu:
            raise NotImplementedError
        return super().forward(query, key, value, **options)


def test_no_layer_is_on_a_tpu():
    states, attention = torch.rand(3, 2, 8), OlderAttention(8, 2, self_attention=True)
    stock = MultiheadAttention(8, 2, self_attention=True)
    stock.load_state_dict(attention.state_dict())
    assert torch.equal(attention(states, states, states)[0], stock(states, states, states)[0])
    assert TransformerSentenceEncoder.tpu is False
    stock.tpu = True  # as prepare_for_tpu_ of a plugin does
    torch.jit.script(MultiheadAttention(8, 2, self_attention=True))


class OlderMean(torch.nn.Module):
    """The mean of all states so far, with a state of decoding as layers for 0.9 have it."""

    def forward(self, states, incremental_state=None):
        before = utils.get_incremental_state(self, incremental_state, "mean_state")
        total = before["sum"] + states if before else states.cumsum(1)
        utils.set_incremental_state(self, incremental_state, "mean_state", {"sum": total})
        return total

    def reorder_incremental_state(self, incremental_state, new_order):
        state = utils.get_incremental_state(self, incremental_state, "mean_state")
        if state is not None:
            state["sum"] = state["sum"].index_select(0, new_order)
            utils.set_incremental_state(self, incremental_state, "mean_state", state)


class OlderMeans(FairseqIncrementalDecoder):
    """Two such layers; today's base puts their states in order."""

    def __init__(self):
        super().__init__(Dictionary())
        self.first, self.second = OlderMean(), OlderMean()

    def forward(self, states, incremental_state=None):
        return self.second(self.first(states, incremental_state), incremental_state)


def test_layers_keep_states_of_decoding():
    decoder, states = OlderMeans(), torch.rand(2, 3, 4)
    whole, incremental_state = decoder(states), {}
    for step in range(3):
        stepwise = decoder(states[:, step : step + 1], incremental_state)
        assert torch.allclose(stepwise, whole[:, step : step + 1])
    assert len(incremental_state) == 2  # one for each layer
    decoder.reorder_incremental_state_scripting(incremental_state, torch.tensor([1, 1]))
    after = decoder(states[:1, :1].expand(2, 1, 4), incremental_state)
    assert torch.equal(after[0], after[1])
    assert not decoder.state_dict()


def test_layers_of_today_keep_their_own():
    attention, incremental_state = MultiheadAttention(8, 2, self_attention=True), {}
    utils.set_incremental_state(attention, incremental_state, "attn_state", {"prev_key": None})
    assert attention.get_incremental_state(incremental_state, "attn_state") == {"prev_key": None}
    read = utils.get_incremental_state(attention, incremental_state, "attn_state")
    assert read == {"prev_key": None}
    assert utils.get_incremental_state(OlderMean(), None, "mean_state") is None


WIDE = {
    **{"decoder_embed_dim": 24, "decoder_ffn_embed_dim": 8, "decoder_attention_heads": 2},
    **{"decoder_normalize_before": True, "dropout": 0.0, "attention_dropout": 0.0},
}


@pytest.mark.parametrize("wrap", [lambda values: Namespace(**values), OmegaConf.create])
@pytest.mark.parametrize(("width", "expected"), [({}, 24), ({"encoder_embed_dim": 10}, 10)])
def test_a_decoder_layer_without_the_width_of_the_encoder(wrap, width, expected):
    """It attends to states of its own width, as in fairseq 0.10."""
    args = wrap({**WIDE, **width})
    layer = TransformerDecoderLayer(args)
    assert layer.encoder_attn.kdim == layer.encoder_attn.vdim == expected and layer.args is args
    states, _, _ = layer(torch.randn(3, 2, 24), torch.randn(4, 2, expected))
    assert states.shape == (3, 2, 24)


def test_a_decoder_layer_of_grouped_options():
    config = TransformerConfig()
    config.decoder.embed_dim, config.encoder.embed_dim = 24, 512
    assert TransformerDecoderLayer(config).encoder_attn.kdim == 512


def test_a_decoder_layer_that_attends_to_no_encoder():
    assert TransformerDecoderLayer(Namespace(**WIDE), no_encoder_attn=True).encoder_attn is None
