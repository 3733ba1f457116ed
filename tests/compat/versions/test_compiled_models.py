"""torch.compile takes fairseq's models, with the patches that act on them."""

import pytest
import torch
from common.words import numbered_words
from fairseq.models.transformer import (
    TransformerConfig,
    TransformerDecoderBase,
    TransformerEncoderBase,
)


@pytest.fixture
def compiled():
    """Function: a module, compiled without another program."""
    try:
        torch.compile(torch.nn.Identity(), backend="eager")(torch.ones(1))
    except (AttributeError, RuntimeError) as error:
        pytest.skip(f"this torch compiles nothing with this Python: {error}")
    return lambda module: torch.compile(module, backend="eager")


def test_a_transformer_computes_the_same(compiled):
    dictionary = numbered_words(12)
    cfg = TransformerConfig()
    for side in (cfg.encoder, cfg.decoder):
        side.embed_dim, side.ffn_embed_dim, side.attention_heads, side.layers = 8, 8, 2, 1
    cfg.decoder.output_dim = cfg.decoder.input_dim = 8
    words = torch.nn.Embedding(len(dictionary), 8, dictionary.pad())
    encoder = TransformerEncoderBase(cfg, dictionary, words).eval()
    decoder = TransformerDecoderBase(cfg, dictionary, words).eval()

    def scores(encode, decode):
        output = encode(torch.tensor([[4, 5, 6, 2]]), torch.tensor([4]))
        return decode(torch.tensor([[2, 4, 5]]), output)[0]

    with torch.no_grad():
        expected = scores(encoder, decoder)
        torch.testing.assert_close(scores(compiled(encoder), compiled(decoder)), expected)
