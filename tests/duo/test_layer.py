"""Sizes and parameters of a layer; its equations are compared in test_modules.py."""

import pytest

from fairseq_ext.duo.transformer.layer import DuoAttention, DuoSize


def attention_maps(streams, share_kv):
    size = DuoSize(12, 8, 2, 1, streams=streams, share_kv=share_kv, fusion=False)
    module = DuoAttention(size)
    kinds = ("query", "key_value")
    named = module.named_parameters()
    return sum(parameter.numel() for name, parameter in named if name.startswith(kinds))


def test_one_third_more_projections():
    """Sec. 3.2.1: with shared K and V, 4 input projections instead of 3; unshared, 6."""
    stock = attention_maps(1, False)
    assert stock == 3 * (12 * 12 + 12)
    assert attention_maps(2, True) * 3 == stock * 4
    assert attention_maps(2, False) == stock * 2


@pytest.mark.parametrize(
    "change, message",
    [
        ({"heads": 3}, "--attention-heads 3: must divide --embed-dim 8"),
        ({"embed_dim": 9, "heads": 3}, "--embed-dim 9: must be even"),
        ({"ffn_dim": 0}, "--ffn-embed-dim 0"),
        ({"dropout": 1.0}, "--dropout 1.0"),
        ({"duo_norm": "encoder"}, "--duo-norm encoder: must be one of decoder, all, off"),
    ],
)
def test_bad_sizes_name_their_option(change, message):
    with pytest.raises(ValueError, match=message):
        DuoSize(**{"embed_dim": 8, "ffn_dim": 8, "heads": 2, "layers": 1, **change})
