"""Parts of Transformers: attention in 16 bits, positions as fairseq's, sizes and first values."""

import contextlib
import math

import pytest
import torch
from fairseq.modules import SinusoidalPositionalEmbedding
from torch.nn import functional as F

from fairseq_ext.common import transformer
from fairseq_ext.common.transformer import Positions, TransformerSize, attend, projection

PAD = 1


@pytest.mark.parametrize("autocast", [False, True])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_single_precision_rounded(dtype, causal, autocast, monkeypatch):
    """On CPUs values and gradients are computed in 32 bits; only the results are rounded.

    In bfloat16 where sentences are too long for products.
    """
    monkeypatch.setattr(transformer, "SHORT_SEQUENCE", 6)
    if not hasattr(F, "scaled_dot_product_attention"):
        pytest.skip("torch before 2.0 has no fused kernel, which this is about")
    torch.manual_seed(0)
    parts = [torch.randn(3, 2, 7, 8).to(dtype) for _ in range(3)]
    visible = None if causal else torch.rand(3, 1, 1, 7) > 0.3
    if visible is not None:
        visible[..., 0] = True
    upstream = torch.randn(3, 2, 7, 8).to(dtype)
    seen, kernel = [], F.scaled_dot_product_attention

    def watched(query, key, value, **options):
        seen.append({query.dtype, key.dtype, value.dtype})
        return kernel(query, key, value, **options)

    monkeypatch.setattr(F, "scaled_dot_product_attention", watched)
    half = [part.clone().requires_grad_() for part in parts]
    # fp16 is not for CPU's autocast in older versions of torch
    inside = torch.autocast("cpu", torch.bfloat16) if autocast else contextlib.nullcontext()
    with inside:
        rounded, _ = attend(*half, visible, 0.0, causal)
    rounded.backward(upstream)
    single = [part.float().requires_grad_() for part in parts]
    exact, _ = attend(*single, visible, 0.0, causal)
    exact.backward(upstream.float())
    assert seen == 2 * [{torch.float32}]
    assert torch.equal(rounded, exact.to(dtype))
    for ours, theirs in zip(half, single):
        assert torch.equal(ours.grad, theirs.grad.to(dtype))


def multiplies_bfloat16():
    """True if oneDNN multiplies bfloat16 here, so that short sentences take products."""
    short = torch.zeros(1, 1, 1, 1, dtype=torch.bfloat16)
    return transformer._has_short_products(short, short)


@pytest.mark.parametrize("autocast", [False, True])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("queries, positions, heads", [(7, 7, 2), (1, 1, 1), (20, 20, 3)])
def test_short_sentences_in_bfloat16(queries, positions, heads, causal, autocast, monkeypatch):
    """Products in bfloat16 give value and gradients within its rounding, and exact zeros."""
    if not multiplies_bfloat16():
        pytest.skip("oneDNN does not multiply bfloat16 on this processor")
    monkeypatch.setattr(F, "scaled_dot_product_attention", None)  # the kernel has no part in it
    torch.manual_seed(0)
    # as heads are cut from a projection: strided
    sizes = queries, positions, positions
    parts = [torch.randn(3, size, heads, 8).bfloat16().transpose(1, 2) for size in sizes]
    visible = None if causal else torch.rand(3, 1, 1, positions) > 0.3
    if visible is not None:
        visible[..., 0] = True
    upstream = torch.randn(3, queries, heads, 8).bfloat16().transpose(1, 2)
    rounded = [part.clone().requires_grad_() for part in parts]
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        outputs, _ = attend(*rounded, visible, 0.0, causal)
    outputs.backward(upstream)
    exact = [part.double().requires_grad_() for part in parts]
    expected, _ = attend(*exact, visible, 0.0, causal, need_weights=True)
    expected.backward(upstream.double())
    assert outputs.dtype == torch.bfloat16
    pairs = [(outputs, expected), *((r.grad, e.grad) for r, e in zip(rounded, exact))]
    for ours, theirs in pairs:
        scale = max(1.0, theirs.abs().max().item())
        torch.testing.assert_close(ours.double(), theirs, rtol=0, atol=3 * 2**-8 * scale)
    if visible is not None:
        hidden = ~visible.transpose(2, 3).expand_as(parts[1])
        assert not rounded[1].grad[hidden].any() and not rounded[2].grad[hidden].any()
    else:
        # the last position is seen by the last query alone
        last = rounded[2].grad[:, :, -1]
        weights = torch.softmax(
            (exact[0][:, :, -1:] / math.sqrt(8)) @ exact[1].transpose(2, 3), dim=-1
        )[..., -1]  # (B, H, 1)
        torch.testing.assert_close(
            last.double(), weights * upstream[:, :, -1].double(), rtol=0.02, atol=0.01
        )


def test_short_sentences_drop_weights():
    """Attention dropout is that of the weights, by torch's seeded numbers."""
    if not multiplies_bfloat16():
        pytest.skip("oneDNN does not multiply bfloat16 on this processor")
    torch.manual_seed(0)
    query, key = (torch.randn(2, 1, 5, 8).bfloat16() for _ in range(2))
    value = torch.eye(5).bfloat16().expand(2, 1, 5, 5)
    torch.manual_seed(1)
    dropped, _ = attend(query, key, value, None, 0.5)
    torch.manual_seed(1)
    exact = torch.softmax((query.float() / math.sqrt(8)) @ key.float().transpose(2, 3), dim=-1)
    expected = F.dropout(exact.bfloat16(), 0.5)
    assert torch.equal(dropped == 0, expected == 0) and (dropped == 0).any()
    torch.testing.assert_close(dropped.float(), expected.float(), rtol=0.02, atol=0.02)


@pytest.mark.parametrize("causal", [False, True])
def test_weights_of_the_attention(causal):
    """softmax(q k / sqrt(d)) by hand, whoever computes it."""
    torch.manual_seed(0)
    query, key, value = (torch.randn(2, 3, 4, 8, dtype=torch.float64) for _ in range(3))
    scores = torch.einsum("bhtd,bhsd->bhts", query, key) / math.sqrt(8)
    if causal:
        scores[..., torch.ones(4, 4).triu(1).bool()] = -math.inf
    expected = scores.softmax(dim=-1)
    outputs, weights = attend(query, key, value, None, 0.0, causal, need_weights=True)
    torch.testing.assert_close(weights, expected)
    torch.testing.assert_close(outputs, expected @ value)
    outputs, weights = attend(query, key, value, None, 0.0, causal)
    assert weights is None
    torch.testing.assert_close(outputs, expected @ value)


@pytest.mark.parametrize("length", [2, 8, 9])  # of the first table, and of the tokens
def test_positions_are_those_of_fairseq(length):
    """Padding on either side, and more tokens than the table has rows for."""
    tokens = torch.full((3, 9), 5)
    tokens[1, :4] = PAD
    tokens[2, 6:] = PAD
    ours = Positions(6, PAD, length)(tokens)
    torch.testing.assert_close(ours, SinusoidalPositionalEmbedding(6, PAD, 20)(tokens))


@pytest.mark.parametrize("length", [2, 8, 9])
def test_newest_position_is_the_last_of_all(length):
    positions, tokens = Positions(6, PAD, length), torch.full((3, 9), 5)
    newest = positions(tokens, only_last=True)
    assert torch.equal(newest, positions(tokens)[:1, -1:])


@pytest.mark.parametrize(
    "sizes, message",
    [
        ((8, 8, 3, 1), "--attention-heads 3: must divide --embed-dim 8"),
        ((3, 8, 3, 1), r"--embed-dim 3: must be even \(sinusoidal positions\)"),
        ((8, 0, 2, 1), "--ffn-embed-dim 0: must be at least 1"),
    ],
)
def test_sizes_out_of_range(sizes, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        TransformerSize(*sizes)


def test_projections_side_by_side_are_xavier_each_over_sqrt_2():
    torch.manual_seed(1)
    bound = (6 / (50 + 40)) ** 0.5 / 2**0.5
    for part in projection(50, 40, 40).weight.split(40):
        assert 0.97 * bound < part.abs().max() <= bound


def test_positions_are_in_no_checkpoint():
    assert not Positions(8, PAD).state_dict()
