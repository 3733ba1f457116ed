"""The loop over all layers with attention is the literal steps: values and every gradient.

Legend: B sentences, S source positions, T steps, D embedding, C annotation.
"""

import pytest
import torch

from fairseq_ext.routed.encoder_decoder import Decoder, RoutedSize
from fairseq_ext.routed.modules import RoutedUnit

SENTENCES, POSITIONS, STEPS, ANNOTATION = 3, 5, 4, 6
SIZE = RoutedSize(embed_dim=4, hidden_size=3, attention_size=5, router_size=2, dropout=0.0)
OUTPUTS = ("states", "contexts", "attention", "routing")


def build(layers, shared):
    torch.manual_seed(1)
    units, inputs = [], SIZE.embed_dim + ANNOTATION
    for _ in range(layers):
        units.append(RoutedUnit(inputs, SIZE.hidden_size, shared, router_size=SIZE.router_size))
        inputs = units[-1].output_size
    return Decoder(SIZE, units, ANNOTATION).double()


def gradients(decoder, path, outputs):
    """Outputs of ``path`` and the gradients of a random weighting of those that are named."""
    torch.manual_seed(2)
    vectors, annotations = (
        torch.randn(SENTENCES, count, width, dtype=torch.float64, requires_grad=True)
        for count, width in ((STEPS, SIZE.embed_dim), (POSITIONS, ANNOTATION))
    )
    padding = torch.arange(POSITIONS) >= torch.tensor([5, 2, 1]).unsqueeze(1)
    decoded = path(vectors, decoder.prepare(annotations, padding, ""), "")._asdict()
    parts = {name: decoded[name] for name in OUTPUTS[:3]}
    parts.update({f"routing.{n}": tau for n, tau in enumerate(decoded["routing"]) if tau.size(2)})
    loss = sum(
        (part * torch.randn(part.shape, dtype=part.dtype)).sum()
        for name, part in parts.items()
        if name.split(".")[0] in outputs
    )
    named = {**dict(decoder.named_parameters()), "vectors": vectors, "annotations": annotations}
    slopes = torch.autograd.grad(loss, list(named.values()), allow_unused=True)
    return {**parts, **{f"grad {name}": slope for name, slope in zip(named, slopes)}}


@pytest.mark.parametrize("outputs", [OUTPUTS, ("attention",), ("routing",)], ids="+".join)
@pytest.mark.parametrize("shared", [0, 2], ids=["plain", "routed"])
@pytest.mark.parametrize("layers", [1, 3])
def test_the_loop_is_the_literal_steps(layers, shared, outputs):
    if outputs == ("routing",) and not shared:
        pytest.skip("a plain GRU has no router")
    decoder = build(layers, shared)
    literal = gradients(decoder, decoder.literal, outputs)
    for name, fused in gradients(decoder, decoder.fused, outputs).items():
        expected = literal[name]
        if expected is None:  # no output that counts depends on it
            assert fused is None or not fused.any(), name
        else:
            torch.testing.assert_close(fused, expected, msg=lambda text, name=name: name + text)


def test_attention_leaves_padding_out():
    decoder = build(2, 2)
    attention = gradients(decoder, decoder.fused, OUTPUTS)["attention"]
    assert attention.sum(dim=2).allclose(torch.ones(SENTENCES, STEPS, dtype=torch.float64))
    assert not attention[1, :, 2:].any() and attention[2, :, 0].eq(1).all()
