"""Attention in 16 bits on CPUs: computed in 32, so that only the results are rounded."""

import contextlib

import pytest
import torch
from torch.nn import functional as F

from fairseq_ext.common.transformer import attend


@pytest.mark.parametrize("autocast", [False, True])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_single_precision_rounded(dtype, causal, autocast, monkeypatch):
    """Value and gradient are those of the same numbers in 32 bits, which is what torch is given."""
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
        found, _ = attend(*half, visible, 0.0, causal)
    found.backward(upstream)
    single = [part.float().requires_grad_() for part in parts]
    wanted, _ = attend(*single, visible, 0.0, causal)
    wanted.backward(upstream.float())
    assert seen == 2 * [{torch.float32}]
    assert torch.equal(found, wanted.to(dtype))
    for one, other in zip(half, single):
        assert torch.equal(one.grad, other.grad.to(dtype))
