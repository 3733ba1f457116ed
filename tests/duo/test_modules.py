"""The Duo Transformer's modules against the NumPy reference, in value and in gradient."""

import numpy as np
import pytest
import torch
from duo.support import ROWS, Case, gradient_of, places
from torch import nn
from toy_sentences import END, PAD, rows

from fairseq_ext.duo.transformer.layer import DuoAttention, DuoSize
from fairseq_ext.duo.transformer.modules import DuoDecoder, DuoEmbedding
from reference import duo as reference
from reference import gradient

# sinusoids are float32 in the torch code, so that is as close as float64 weights come
TOLERANCE = 2e-6
# lengths of the source sentences and of the target sentences of one batch
BATCHES = [([1], [1]), ([4, 1, 3], [2, 4, 1])]


@pytest.mark.parametrize("lengths", BATCHES, ids=["one", "batch"])
@pytest.mark.parametrize("row", ROWS)
def test_model_is_eq_4_to_6(row, lengths):
    """Streams of the encoder and logits, padded on either side."""
    case = Case(row, *lengths, seed=1)
    prev = [[END, *target[:-1]] for target in case.targets]
    for left in (False, True):
        with torch.no_grad():
            states, padding = case.model.encoder.encode(rows(case.sources, left))
            scores = case.model.logits(rows(case.sources, left), rows(prev))
        for number, source in enumerate(case.sources):
            expected, _ = reference.encode(source, case.shape, case.params, PAD)
            computed = states[number][~padding[number]].numpy()
            np.testing.assert_allclose(computed, np.concatenate(expected, axis=1), atol=TOLERANCE)
            expected = reference.translate(source, prev[number], case.shape, case.params, PAD)
            computed = scores[number, : len(prev[number])].numpy()
            np.testing.assert_allclose(computed, expected, atol=10 * TOLERANCE)


@pytest.mark.parametrize("row", ["share-kv", "fusion", "norm-everywhere"])
def test_gradient_of_the_loss(row):
    """Against central differences: some of every kind of array."""
    case = Case(row, [3, 1], [2, 3], seed=2)
    loss = case.model.loss(case.sources, case.targets)
    assert loss.item() == pytest.approx(case.reference_loss(), rel=1e-6)
    loss.backward()
    names = [name for name in places(case.shape) if name in ("fuse", "project")]
    names += [name for name in places(case.shape) if ".0.0" in name or "adapter" in name]
    names += list(case.rng.choice([*places(case.shape)], size=12, replace=False))
    for name in names:
        grad = gradient_of(case.model, case.shape, name)
        (index,) = gradient.random_entries(case.params[name], 1, case.rng)
        if "embedding" in name and index[0] == PAD:
            continue  # torch gives padding no gradient
        expected = gradient.central_difference(case.reference_loss, case.params[name], index)
        assert grad[index].item() == pytest.approx(expected, rel=2e-4, abs=2e-6), name


def test_crossed_values_would_be_noticed():
    """The broken twin of this file: keys and values of one stream, as in ordinary attention."""
    case = Case("share-kv", [3], [3], seed=3)
    keys_values = DuoAttention.keys_values

    class Broken(DuoAttention):
        def keys_values(self, states):
            pair = keys_values(self, states)
            return [[second[0], first[0]] for first, second in zip(pair, pair[::-1])]

    case.model.encoder.layers[0].self_attention.__class__ = Broken
    crossed = case.model.loss(case.sources, case.targets).item()
    assert abs(crossed - case.reference_loss()) > 1e-3


def test_both_orders_of_the_output_product_are_one_function():
    """[E_S ; E_P] W_out first for many tokens, h first for few."""
    torch.manual_seed(0)
    size = DuoSize(8, 8, 2, 1)
    tables = [nn.Embedding(11, width, PAD) for width in (8, 5)]
    decoder = DuoDecoder(size, DuoEmbedding(tables, 8)).double()
    states = torch.randn(40, 3, 8, dtype=torch.float64)
    with torch.no_grad():
        whole = decoder.logits(states)
        torch.testing.assert_close(whole[:1], decoder.logits(states[:1]))


def test_shared_projection_is_kept_once_while_decoding():
    """A cache of one (R, H, T, d) for each stream and layer where K and V share."""
    for row, parts in (("share-kv", 1), ("meta-embeddings", 2)):
        case, cache = Case(row, [3], [2], seed=4), {}
        encoded = case.model.encoder.encode(rows(case.sources))
        case.model.decoder.decode(torch.tensor([[END]]), *encoded, cache)
        self_keys = [name for name in cache if not name.startswith("context_")]
        assert len(self_keys) == 2 * case.shape.depth * parts
