"""The components against the NumPy reference of the paper, in value and in gradient.

Legend: B sentences, S source positions, T target positions, V words.
"""

import numpy as np
import pytest
import torch
from dual.support import component_of, gradient_of, places, random_shape, size_of
from toy_sentences import END, PAD, previous, random_sentence, rows, sum_of_nll

from fairseq_ext.dual.transformer.modules import Component, ComponentSize
from reference import dual as reference
from reference import gradient

# sinusoids are float32 in the torch code, so that is as close as float64 weights come
TOLERANCE = 2e-6
# lengths of the source sentences and of the target sentences of one batch
BATCHES = [([1], [1]), ([1], [4]), ([5], [1]), ([4, 1, 3], [2, 5, 1]), ([3, 3], [4, 4])]


class Case:
    """Two components with random numbers in both forms, and a batch of sentence pairs."""

    def __init__(self, seed, normalize_before, source_lengths, target_lengths):
        rng = np.random.default_rng(seed)
        self.rng = rng
        self.shape = random_shape(rng, normalize_before)
        self.words = int(rng.integers(7, 13))
        self.params = {z: reference.random_parameters(self.shape, self.words, rng) for z in "xy"}
        self.components = {z: component_of(self.params[z], self.shape) for z in "xy"}
        self.x = [random_sentence(rng, length, self.words) for length in source_lengths]
        self.y = [random_sentence(rng, length, self.words) for length in target_lengths]

    def logits(self, source, target, reader, writer, left=True):
        """(B, T, V) of the model that reads with ``reader`` and writes with ``writer``."""
        states, padding = self.components[reader].encode(rows(source, left=left))
        out, _ = self.components[writer].decode(previous(target), states, padding)
        return self.components[writer].logits(out)

    def nll(self, source, target, reader, writer):
        """Sum of -log P over the batch."""
        return sum_of_nll(self.logits(source, target, reader, writer), target)

    def reference_pair_loss(self):
        return sum(
            reference.pair_loss(x, y, self.params["x"], self.params["y"], self.shape, PAD)
            for x, y in zip(self.x, self.y)
        )


@pytest.fixture(params=[False, True], ids=["post-norm", "pre-norm"])
def normalize_before(request):
    return request.param


@pytest.fixture(params=BATCHES, ids=lambda lengths: f"{lengths[0]}-{lengths[1]}")
def case(request, normalize_before):
    return Case(
        sum(request.param[0]) + 10 * sum(request.param[1]), normalize_before, *request.param
    )


@pytest.mark.parametrize("left", [False, True], ids=["right-padded", "left-padded"])
def test_encoding_role_is_eq_4(case, left):
    with torch.no_grad():
        states, padding = case.components["x"].encode(rows(case.x, left=left))
    for number, sentence in enumerate(case.x):
        expected, _ = reference.encode(sentence, case.shape, case.params["x"], PAD)
        np.testing.assert_allclose(
            states[number][~padding[number]].numpy(), expected, atol=TOLERANCE
        )


@pytest.mark.parametrize("reader, writer", ["xy", "yx"], ids=["primal", "dual"])
def test_both_models_are_eq_4_and_5(case, reader, writer):
    source, target = (case.x, case.y) if reader == "x" else (case.y, case.x)
    with torch.no_grad():
        scores = case.logits(source, target, reader, writer)
    for number, (read, written) in enumerate(zip(source, target)):
        expected = reference.translate(
            read,
            reference.shifted(written, END),
            case.params[reader],
            case.params[writer],
            case.shape,
            PAD,
        )
        np.testing.assert_allclose(
            scores[number, : len(written)].numpy(), expected, atol=20 * TOLERANCE
        )


def test_padded_reference_sentences_are_masked():
    """The reference's own padding mask: a sentence with padding in it, as one row of a batch."""
    case = Case(3, False, [4], [3])
    padded = [*case.x[0], PAD, PAD]
    expected, _ = reference.encode(padded, case.shape, case.params["x"], PAD)
    with torch.no_grad():
        states, padding = case.components["x"].encode(torch.tensor([padded]))
    np.testing.assert_allclose(states[0, :4].numpy(), expected[:4], atol=TOLERANCE)
    assert padding.tolist() == [[False] * 4 + [True] * 2]


def test_block_is_eq_4_and_5(normalize_before):
    """One block alone, on random states, with some of the positions hidden."""
    rng = np.random.default_rng(11)
    shape = random_shape(rng, normalize_before)
    params = reference.random_parameters(shape, 9, rng)
    block = component_of(params, shape).blocks[0]
    states, context = rng.normal(size=(4, shape.embed_dim)), rng.normal(size=(3, shape.embed_dim))
    hidden, context_hidden = [False, True, False, False], [True, False, False]

    def visible(padding):
        return ~torch.tensor(padding)[None, None, None, :]

    with torch.no_grad():
        keys_values = block.context_attention.keys_values(torch.tensor(context)[None])
        encoded, _ = block(torch.tensor(states)[None], visible=visible(hidden))
        decoded, _ = block(
            torch.tensor(states)[None],
            causal=True,
            context=keys_values,
            context_visible=visible(context_hidden),
        )
    expected = reference.block(states, hidden, None, None, False, shape, params, "blocks.0")
    np.testing.assert_allclose(encoded[0].numpy(), expected, atol=1e-10)
    nothing_hidden = [False] * 4
    expected = reference.block(
        states, nothing_hidden, context, context_hidden, True, shape, params, "blocks.0"
    )
    np.testing.assert_allclose(decoded[0].numpy(), expected, atol=1e-10)


@pytest.mark.parametrize("lengths", [([1], [1]), ([3, 1], [2, 4])], ids=["one", "batch"])
def test_gradient_of_the_pair_loss(lengths, normalize_before):
    """d(-log P(y|x; f) - log P(x|y; g)) against central differences, both components."""
    case = Case(21, normalize_before, *lengths)
    loss = case.nll(case.x, case.y, "x", "y") + case.nll(case.y, case.x, "y", "x")
    assert loss.item() == pytest.approx(case.reference_pair_loss(), rel=1e-6)
    loss.backward()
    names = [*places(case.shape)]
    for z in "xy":
        for name in case.rng.choice(names, size=12, replace=False):
            array = case.params[z][name]
            grad = gradient_of(case.components[z], case.shape, name)
            for index in gradient.random_entries(array, 1, case.rng):
                if name == "embedding" and index[0] == PAD:
                    continue
                expected = gradient.central_difference(case.reference_pair_loss, array, index)
                assert grad[index].item() == pytest.approx(expected, rel=1e-4, abs=1e-5), (z, name)


def test_gradient_of_one_model_alone(normalize_before):
    """-log P(y|x; f) by central differences: phi_X reads, phi_Y writes."""
    case = Case(22, normalize_before, [3], [3])
    case.nll(case.x, case.y, "x", "y").backward()

    def primal_loss():
        scores = reference.translate(
            case.x[0],
            reference.shifted(case.y[0], END),
            case.params["x"],
            case.params["y"],
            case.shape,
            PAD,
        )
        return reference.negative_log_likelihood(scores, case.y[0], PAD)[0]

    for z, name in (("x", "blocks.0.self.key.weight"), ("y", "blocks.0.context.value.weight")):
        grad = gradient_of(case.components[z], case.shape, name)
        for index in gradient.random_entries(case.params[z][name], 4, case.rng):
            expected = gradient.central_difference(primal_loss, case.params[z][name], index)
            assert grad[index].item() == pytest.approx(expected, rel=1e-4, abs=1e-6)


def test_null_context_contributes_exactly_nothing(normalize_before):
    """phi^z and its norm: the encoding role gives them no gradient and does not read them."""
    case = Case(5, normalize_before, [4, 2], [3, 3])
    component, tokens = case.components["x"], rows(case.x)
    states, _ = component.encode(tokens)
    states.sum().backward()
    unread = {n: p for n, p in component.named_parameters() if "context_attention" in n}
    assert len(unread) == 8 * case.shape.layers
    assert all(p.grad is None for p in unread.values())
    assert all(p.grad is not None for n, p in component.named_parameters() if n not in unread)
    with torch.no_grad():
        for parameter in unread.values():
            parameter.fill_(float("nan"))
    again, _ = component.encode(tokens)
    assert torch.equal(again, states)


def test_each_role_reaches_its_parameters(normalize_before):
    """The primal loss alone moves phi_Y wholly, and of phi_X all but phi^z (and the softmax)."""
    case = Case(6, normalize_before, [4, 2], [3, 3])
    case.nll(case.x, case.y, "x", "y").backward()
    for name, parameter in case.components["y"].named_parameters():
        # a constant added to all keys of a query changes no softmax: float noise, not a signal
        if not name.endswith(("query.bias", "key_value.bias", "qkv.bias")):
            assert parameter.grad.abs().max() > 1e-9, name
    for name, parameter in case.components["x"].named_parameters():
        assert (parameter.grad is None) == ("context_attention" in name), name


def test_attention_weights_are_a_distribution_over_real_source_words():
    case = Case(7, False, [4, 2], [3, 3])
    states, padding = case.components["x"].encode(rows(case.x))
    plain, none = case.components["y"].decode(previous(case.y), states, padding)
    weighted, weights = case.components["y"].decode(
        previous(case.y), states, padding, need_weights=True
    )
    assert none is None
    torch.testing.assert_close(weighted, plain)
    torch.testing.assert_close(weights.sum(dim=-1), torch.ones(2, 3, dtype=torch.float64))
    assert not weights[1, :, padding[1]].any()


def test_attention_without_the_fused_kernel(case, monkeypatch):
    """What torch before 2.0 runs: the same scores and gradients."""

    def outcome():
        for component in case.components.values():
            component.zero_grad()
        loss = case.nll(case.x, case.y, "x", "y")
        loss.backward()
        parameters = [p for z in "xy" for p in case.components[z].parameters()]
        return loss, [p.grad.clone() for p in parameters if p.grad is not None]

    fused_loss, fused = outcome()
    monkeypatch.delattr(torch.nn.functional, "scaled_dot_product_attention")
    loss, plain = outcome()
    torch.testing.assert_close(loss, fused_loss, rtol=1e-5, atol=1e-6)
    assert len(plain) == len(fused)
    for literal, by_kernel in zip(plain, fused):
        torch.testing.assert_close(literal, by_kernel, rtol=1e-4, atol=1e-5)


def test_long_sentences_extend_the_table_of_positions():
    case = Case(8, False, [300], [2])
    with torch.no_grad():
        states, _ = case.components["x"].encode(rows(case.x))
    shape, params = case.shape, case.params["x"]
    embedded = reference.layers.embed(case.x[0], params["embedding"], PAD)
    ours = case.components["x"]._embed(rows(case.x))[0].detach().numpy()
    np.testing.assert_allclose(ours, embedded, atol=1e-4)
    assert states.shape == (1, 300, shape.embed_dim)


@pytest.mark.parametrize("rate", ["dropout", "attention_dropout", "activation_dropout"])
def test_each_dropout_acts_in_training_only(rate):
    size = ComponentSize(embed_dim=8, ffn_dim=16, heads=2, layers=1, **{rate: 0.5})
    torch.manual_seed(0)
    component = Component(size, 9, PAD)
    tokens = torch.tensor([[4, 5, 6, 7, 8, END]])
    first, second = (component.encode(tokens)[0] for _ in range(2))
    assert not torch.equal(first, second)
    component.eval()
    first, second = (component.encode(tokens)[0] for _ in range(2))
    assert torch.equal(first, second)


@pytest.mark.parametrize(
    "field, value, message",
    [
        ("heads", 3, "--attention-heads 3: must divide --embed-dim 8"),
        ("heads", 0, "--attention-heads 0: must be at least 1"),
        ("embed_dim", 7, "--embed-dim 7|--attention-heads 2: must divide --embed-dim 7"),
        ("ffn_dim", 0, "--ffn-embed-dim 0"),
        ("layers", 0, "--layers 0"),
        ("dropout", 1.0, "--dropout 1.0"),
        ("attention_dropout", -0.1, "--attention-dropout -0.1"),
        ("activation_dropout", 2.0, "--activation-dropout 2.0"),
    ],
)
def test_impossible_sizes_name_the_option(field, value, message):
    fields = {"embed_dim": 8, "ffn_dim": 16, "heads": 2, "layers": 1, field: value}
    with pytest.raises(ValueError, match=message):
        ComponentSize(**fields)


def test_size_of_uses_every_field_of_the_reference():
    shape = reference.Shape(8, 16, 2, 1, normalize_before=True)
    assert vars(size_of(shape)).items() >= {"embed_dim": 8, "normalize_before": True}.items()
