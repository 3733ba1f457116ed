"""torch.compile takes fairseq's models, with the patches that act on them."""

import pytest
import torch
from common.words import numbered_words
from fairseq.models.transformer import (
    TransformerConfig,
    TransformerDecoderBase,
    TransformerEncoderBase,
)

from fairseq_ext.compat.versions import returned_values


@pytest.fixture
def compiled():
    """Function: a module, compiled without another program."""
    try:
        torch.compile(torch.nn.Identity(), backend="eager")(torch.ones(1))
    except (AttributeError, RuntimeError) as error:
        pytest.skip(f"this torch compiles nothing with this Python: {error}")
    return lambda module: torch.compile(module, backend="eager")


@pytest.fixture
def parts():
    """An encoder and a decoder of two layers."""
    dictionary = numbered_words(12)
    cfg = TransformerConfig()
    for side in (cfg.encoder, cfg.decoder):
        side.embed_dim, side.ffn_embed_dim, side.attention_heads, side.layers = 8, 8, 2, 2
    cfg.decoder.output_dim = cfg.decoder.input_dim = 8
    words = torch.nn.Embedding(len(dictionary), 8, dictionary.pad())
    encoder = TransformerEncoderBase(cfg, dictionary, words).eval()
    return encoder, TransformerDecoderBase(cfg, dictionary, words).eval()


INPUTS = (torch.tensor([[4, 5, 6, 2]]), torch.tensor([4]))
PREVIOUS = torch.tensor([[2, 4, 5]])


def test_a_transformer_computes_the_same(compiled, parts):
    def scores(encode, decode):
        return decode(PREVIOUS, encode(*INPUTS))[0]

    with torch.no_grad():
        expected = scores(*parts)
        torch.testing.assert_close(scores(*map(compiled, parts)), expected)


def test_layers_do_not_divide_a_compiled_decoder(compiled, parts, monkeypatch):
    """The patch for decoders of fairseq 0.9 looks at the stack, which torch cannot compile."""
    monkeypatch.setattr(returned_values, "UNPACKERS", [])
    encoder, decoder = parts
    torch._dynamo.reset()
    explained = torch._dynamo.explain(decoder)(PREVIOUS, encoder(*INPUTS))
    assert not [reason for reason in explained.break_reasons if "_getframe" in str(reason)]


def test_decoders_for_0_9_may_be_compiled(compiled, parts, monkeypatch):
    """Where a plugin has a class that may take two values, the stack is looked at as ever."""
    monkeypatch.setattr(returned_values, "UNPACKERS", [])

    class Older(TransformerDecoderBase):
        @torch.no_grad()
        def forward(self, previous, memory):
            x = self.embed_tokens(previous).transpose(0, 1)
            for layer in self.layers:
                x, attention = layer(x, memory)
            return x, attention

    class Newer(TransformerDecoderBase):
        def forward(self, previous, memory):
            x, _, _ = self.layers[0](self.embed_tokens(previous).transpose(0, 1), memory)
            return x

    assert returned_values.UNPACKERS == [Older.__qualname__]
    encoder, decoder = parts
    decoder.__class__ = Older
    memory = encoder(*INPUTS)["encoder_out"][0].detach()
    expected = decoder(PREVIOUS, memory)
    torch.testing.assert_close(compiled(decoder)(PREVIOUS, memory), expected)
