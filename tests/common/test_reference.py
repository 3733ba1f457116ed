"""The NumPy references against torch's and fairseq's own primitives: a check of the checkers."""

import ast
from pathlib import Path

import numpy as np
import pytest
import torch
from fairseq.modules import SinusoidalPositionalEmbedding
from torch.nn import functional

from reference import dual, gradient, layers, losses

REFERENCE = Path(layers.__file__).parent
NAMES = ("query", "key", "value", "output")


@pytest.fixture
def rng():
    return np.random.default_rng(5)


def tensor(array):
    return torch.from_numpy(np.asarray(array))


def test_references_import_only_numpy_and_mathematics():
    allowed = {"numpy", "math", "cmath"}
    paths = list(REFERENCE.glob("*.py"))
    assert len(paths) > 5
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                assert {name.name for name in node.names} <= allowed, path
            if isinstance(node, ast.ImportFrom):
                assert node.level == 1 or node.module in allowed, path


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("heads", [1, 2, 4])
def test_attention(rng, causal, heads):
    width, positions = 8, 5
    params = {}
    for name in NAMES:
        params[f"a.{name}.weight"] = rng.normal(size=(width, width))
        params[f"a.{name}.bias"] = rng.normal(size=width)
    states = rng.normal(size=(positions, width))
    allowed = layers.visibility(positions, [False] * 4 + [True], causal)
    ours = layers.attention(states, states, allowed, params, "a", heads)
    theirs, _ = functional.multi_head_attention_forward(
        *[tensor(states).unsqueeze(1)] * 3,
        embed_dim_to_check=width,
        num_heads=heads,
        in_proj_weight=tensor(np.concatenate([params[f"a.{n}.weight"] for n in NAMES[:3]])),
        in_proj_bias=tensor(np.concatenate([params[f"a.{n}.bias"] for n in NAMES[:3]])),
        bias_k=None,
        bias_v=None,
        add_zero_attn=False,
        dropout_p=0.0,
        out_proj_weight=tensor(params["a.output.weight"]),
        out_proj_bias=tensor(params["a.output.bias"]),
        attn_mask=tensor(~allowed),
    )
    np.testing.assert_allclose(ours, theirs.squeeze(1).numpy(), atol=1e-12)


def test_position_that_sees_nothing_gets_the_output_bias(rng):
    params = {f"a.{n}.weight": rng.normal(size=(4, 4)) for n in NAMES}
    params.update({f"a.{n}.bias": rng.normal(size=4) for n in NAMES})
    states = rng.normal(size=(2, 4))
    allowed = np.array([[False, False], [True, True]])
    mixed = layers.attention(states, states, allowed, params, "a", heads=2)
    np.testing.assert_array_equal(mixed[0], params["a.output.bias"])


def test_layer_norm(rng):
    params = {"n.weight": rng.normal(size=6), "n.bias": rng.normal(size=6)}
    states = rng.normal(size=(3, 6))
    theirs = functional.layer_norm(
        tensor(states), (6,), tensor(params["n.weight"]), tensor(params["n.bias"]), 1e-5
    )
    np.testing.assert_allclose(layers.layer_norm(states, params, "n"), theirs.numpy(), atol=1e-12)


@pytest.mark.parametrize("tokens", [[7], [7, 8, 2], [1, 1, 7, 2], [7, 2, 1, 1]])
def test_positions_are_those_of_fairseq(tokens):
    embedding = np.zeros((9, 6))
    theirs = SinusoidalPositionalEmbedding(6, 1, 20)(torch.tensor([tokens]))[0]
    np.testing.assert_allclose(layers.embed(tokens, embedding, 1), theirs.numpy(), atol=1e-5)


def test_embedding_is_scaled(rng):
    embedding = rng.normal(size=(9, 4))
    difference = layers.embed([5], embedding, 1) - layers.embed([5], 0 * embedding, 1)
    np.testing.assert_allclose(difference[0], 2 * embedding[5])


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.6])
def test_label_smoothed_cross_entropy_is_that_of_fairseq(rng, smoothing):
    from fairseq.criterions.label_smoothed_cross_entropy import label_smoothed_nll_loss

    logits, targets = rng.normal(size=(4, 7)), np.array([3, 6, 1, 0])
    smoothed, plain, count = losses.label_smoothed_cross_entropy(logits, targets, 1, smoothing)
    theirs = label_smoothed_nll_loss(
        tensor(logits).log_softmax(-1), tensor(targets), smoothing, ignore_index=1
    )
    assert count == 3
    np.testing.assert_allclose([smoothed, plain], [float(value) for value in theirs], rtol=1e-12)
    assert losses.negative_log_likelihood(logits, targets, 1) == pytest.approx((plain, 3))


def test_central_difference():
    point = np.array([[0.5, -1.5]])
    slope = gradient.central_difference(lambda: (point**3).sum(), point, (0, 1))
    assert slope == pytest.approx(3 * 1.5**2, rel=1e-8)
    assert point.tolist() == [[0.5, -1.5]]


def test_null_context_leaves_the_context_parameters_unread(rng):
    shape = dual.Shape(embed_dim=4, ffn_dim=6, heads=2, layers=2)
    params = dual.random_parameters(shape, 9, rng)
    states, padding = dual.encode([5, 6, 2], shape, params, 1)
    assert padding == [False] * 3
    for name in params:
        if ".context" in name:
            params[name] = params[name] + 100
    np.testing.assert_array_equal(dual.encode([5, 6, 2], shape, params, 1)[0], states)


def test_encoding_sees_the_future_and_decoding_does_not(rng):
    shape = dual.Shape(embed_dim=4, ffn_dim=6, heads=2, layers=1)
    params = dual.random_parameters(shape, 9, rng)
    sentence, changed = [5, 6, 2], [5, 6, 7]
    context, padding = dual.encode(sentence, shape, params, 1)
    assert np.abs(context[0] - dual.encode(changed, shape, params, 1)[0][0]).max() > 1e-3
    states = [
        dual.decode(tokens, context, padding, shape, params, 1) for tokens in (sentence, changed)
    ]
    np.testing.assert_array_equal(states[0][:2], states[1][:2])
    assert np.abs(states[0][2] - states[1][2]).max() > 1e-3
