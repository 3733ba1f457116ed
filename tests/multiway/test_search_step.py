"""The step of a search equals the decoder's step and readout, in values and in hypotheses."""

import pytest
import torch

from fairseq_ext.common.products import WeightCache
from fairseq_ext.multiway import modules, search_step
from fairseq_ext.multiway.modules import MultiwayDecoder, MultiwaySize, SharedAttention

SIZE = MultiwaySize(
    embed_dim=6, hidden_size=8, context_size=10, readout_size=7, init_hidden_size=5, init_size=4
)


@pytest.fixture
def parts():
    """A decoder, an attention and two encoded sources with padding, in double precision."""
    torch.manual_seed(1)
    decoder = MultiwayDecoder(SIZE, 20, 1).double().eval()
    attention = SharedAttention(SIZE).double().eval()
    for parameter in (*decoder.parameters(), *attention.parameters()):
        torch.nn.init.normal_(parameter, std=0.5)  # biases included
    padding = torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
    return decoder, attention, (torch.randn(2, 5, 10, dtype=torch.double), padding)


def steps(parts, beam=3, count=4):
    """Return readout and attention of a search's steps, and the cache after them."""
    decoder, attention, encoded = parts
    tokens = torch.randint(4, 20, (2 * beam, count), generator=torch.Generator().manual_seed(2))
    cache, results = {}, []
    for step in range(count):
        readout, weights = modules.decode(
            decoder, attention, [encoded], tokens[:, : step + 1], cache
        )
        results.append((readout, *weights))
        cache["state"] = cache["state"].flip(0)  # rows change places
    return results, cache


def test_values_are_those_of_the_decoder(parts):
    with torch.no_grad():
        expected, plain = steps(parts)
        with WeightCache().active():
            values, merged = steps(parts)
    assert modules.VALUES_AND_GATES in merged and modules.VALUES_AND_GATES not in plain
    torch.testing.assert_close(values, expected)
    torch.testing.assert_close(merged["state"], plain["state"])


@pytest.mark.parametrize("part", ["gates_context", "readout_context", "query_state"])
def test_every_matrix_matters(parts, part):
    """A matrix that changes between two searches changes the values: none is left behind."""
    with torch.no_grad():
        with WeightCache().active():
            before = steps(parts)[0][-1][0]
        getattr(parts[0], part).weight.mul_(2)
        with WeightCache().active():
            after = steps(parts)[0][-1][0]
        torch.testing.assert_close(after, steps(parts)[0][-1][0])
    assert not torch.allclose(before, after)


def test_where_it_is_used(parts):
    vectors = torch.zeros(1)
    assert not search_step.can_merge(vectors)
    with torch.no_grad(), WeightCache().active():
        assert search_step.can_merge(vectors)
        assert not search_step.can_merge(vectors.bfloat16())  # rounding would show
