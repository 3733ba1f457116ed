"""Imports of plugins for earlier versions of fairseq."""

import io

import torch


def test_layers_of_the_transformer():
    from fairseq import modules
    from fairseq.models import transformer
    from fairseq.models.fairseq_encoder import EncoderOut

    assert transformer.EncoderOut is EncoderOut
    for name in ("TransformerEncoderLayer", "TransformerDecoderLayer", "LayerNorm"):
        assert getattr(transformer, name) is getattr(modules, name)
    # what the module defines itself stays
    assert transformer.Embedding.__module__.startswith("fairseq.models.transformer")


def test_lines_and_subwords():
    from fairseq.binarizer import safe_readline
    from fairseq.data.data_utils import process_bpe_symbol

    assert safe_readline(io.StringIO("a b\nc")) == "a b\n"
    assert process_bpe_symbol("a@@ b c", "@@ ") == "ab c"


def test_seed_of_a_block():
    from fairseq.utils import with_torch_seed

    torch.manual_seed(5)
    expected = torch.rand(2)
    torch.manual_seed(5)
    with with_torch_seed(3):
        inside = torch.rand(2)
    assert torch.equal(torch.rand(2), expected)
    torch.manual_seed(3)
    assert torch.equal(torch.rand(2), inside)
