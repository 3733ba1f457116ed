"""The chunked cross entropy: against the reference, against fairseq's, and its edges."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from fairseq_ext.common import losses as module
from fairseq_ext.common.losses import label_smoothed_cross_entropy
from reference import gradient, losses

PAD = 1


def random_case(rows, words, seed):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(rows, words)) * 3, rng.integers(words, size=rows)


@pytest.mark.parametrize("rows, words, chunk", [(1, 2, 1), (5, 7, 14), (7, 5, 10), (6, 11, 10**6)])
@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.7])
def test_value_and_gradient_equal_the_reference(rows, words, chunk, smoothing, monkeypatch):
    monkeypatch.setitem(module.CHUNK_ELEMENTS, "cpu", chunk)
    array, targets = random_case(rows, words, seed=rows)
    targets[rows // 2] = PAD if rows > 1 else 0
    logits = torch.tensor(array, requires_grad=True)
    loss, nll = label_smoothed_cross_entropy(logits, torch.tensor(targets), smoothing, PAD)
    smoothed, plain, _ = losses.label_smoothed_cross_entropy(array, targets, PAD, smoothing)
    assert loss.sum().item() == pytest.approx(smoothed, rel=1e-12)
    assert nll.sum().item() == pytest.approx(plain, rel=1e-12)
    weights = np.linspace(1, 2, rows)
    loss.backward(torch.tensor(weights))

    def reference_loss():
        return sum(
            weight * losses.label_smoothed_cross_entropy([row], [target], PAD, smoothing)[0]
            for weight, row, target in zip(weights, array, targets)
        )

    for index in np.ndindex(array.shape):
        expected = gradient.central_difference(reference_loss, array, index)
        assert logits.grad[index].item() == pytest.approx(expected, rel=1e-6, abs=1e-8)


def test_gradient_of_padding_is_zero():
    array, targets = random_case(4, 6, seed=1)
    targets[:] = [0, PAD, 3, PAD]
    logits = torch.tensor(array, requires_grad=True)
    loss, nll = label_smoothed_cross_entropy(logits, torch.tensor(targets), 0.1, PAD)
    loss.sum().backward()
    assert not loss[[1, 3]].any() and not nll[[1, 3]].any() and not logits.grad[[1, 3]].any()
    assert logits.grad[[0, 2]].abs().sum() > 0


def test_large_logits_do_not_overflow():
    logits = torch.tensor([[1e4, -1e4, 0.0]], requires_grad=True)
    loss, _ = label_smoothed_cross_entropy(logits, torch.tensor([2]), 0.1, PAD)
    loss.sum().backward()
    assert torch.isfinite(loss).all() and torch.isfinite(logits.grad).all()


@pytest.mark.parametrize("dtype, tolerance", [(torch.bfloat16, 2e-2), (torch.float16, 3e-3)])
def test_low_precision_logits_are_summed_in_float32(dtype, tolerance):
    array, targets = random_case(50, 40, seed=3)
    logits = torch.tensor(array, dtype=dtype, requires_grad=True)
    loss, nll = label_smoothed_cross_entropy(logits, torch.tensor(targets), 0.1, PAD)
    assert loss.dtype == nll.dtype == torch.float32
    rounded = logits.detach().double().numpy()
    expected = losses.label_smoothed_cross_entropy(rounded, targets, PAD, 0.1)
    assert loss.sum().item() == pytest.approx(expected[0], rel=1e-5)
    loss.sum().backward()
    exact = torch.tensor(rounded, requires_grad=True)
    label_smoothed_cross_entropy(exact, torch.tensor(targets), 0.1, PAD)[0].sum().backward()
    assert (logits.grad.double() - exact.grad).abs().max() < tolerance


def test_the_loss_scale_keeps_small_gradients():
    """p = e^-18 is 0 in half precision, 2^12 times p is not: the product comes before rounding."""
    logits = torch.tensor([[0.0, 9.0, -9.0]], dtype=torch.half, requires_grad=True)
    loss, _ = label_smoothed_cross_entropy(logits, torch.tensor([0]), 0.0, PAD)
    (loss.sum() * 2**12).backward()
    p = torch.softmax(logits.detach().double(), dim=1)
    torch.testing.assert_close(logits.grad[0, 2].double(), 2**12 * p[0, 2], rtol=2e-3, atol=0)


@pytest.mark.parametrize("smoothing", [-0.1, 1.0, 2])
def test_smoothing_out_of_range_is_refused(smoothing):
    with pytest.raises(ValueError, match=f"--label-smoothing {smoothing}.*less than 1"):
        label_smoothed_cross_entropy(torch.zeros(1, 3), torch.tensor([0]), smoothing, PAD)


@pytest.mark.parametrize("ignored_prefix", [0, 2])
@pytest.mark.parametrize("reduce", [True, False])
def test_criterion_is_interchangeable_with_the_stock_one(ignored_prefix, reduce):
    from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterion

    from fairseq_ext.common.criterion import ChunkedLabelSmoothedCrossEntropy

    class Logits(torch.nn.Module):
        """A model whose scores are its parameter."""

        def __init__(self):
            super().__init__()
            self.scores = torch.nn.Parameter(torch.randn(3, 5, 9, generator=generator))

        def forward(self):
            return (self.scores,)

        def get_targets(self, sample, net_output):
            return sample["target"]

        def get_normalized_probs(self, net_output, log_probs, sample=None):
            return net_output[0].log_softmax(-1)

    class Task:
        class target_dictionary:  # noqa: N801  (a task's attribute)
            @staticmethod
            def pad():
                return PAD

    generator = torch.Generator().manual_seed(0)
    model = Logits()
    target = torch.randint(2, 9, (3, 5), generator=generator)
    target[1, 3:] = PAD
    sample = {"net_input": {}, "target": target, "ntokens": 13}
    results = []
    for criterion in (LabelSmoothedCrossEntropyCriterion, ChunkedLabelSmoothedCrossEntropy):
        model.zero_grad()
        loss, size, log = criterion(Task, False, 0.1, ignored_prefix)(model, sample, reduce=reduce)
        loss.sum().backward()
        total = {name: float(torch.as_tensor(value).sum()) for name, value in log.items()}
        results.append((loss.sum().item(), size, total, model.scores.grad.clone()))
    stock, ours = results
    assert ours[1] == stock[1]
    assert ours[0] == pytest.approx(stock[0], rel=1e-5)
    assert ours[2] == pytest.approx(stock[2], rel=1e-5)
    torch.testing.assert_close(ours[3], stock[3], rtol=1e-5, atol=1e-6)


def test_a_model_with_an_adaptive_softmax_is_refused():
    """What it returns would pass for logits where it is wider than the dictionary."""
    from fairseq_ext.common.criterion import ChunkedLabelSmoothedCrossEntropy

    model = SimpleNamespace(decoder=SimpleNamespace(adaptive_softmax=torch.nn.Identity()))
    model.get_targets = lambda sample, net_output: sample["target"]
    task = SimpleNamespace(target_dictionary=SimpleNamespace(pad=lambda: PAD))
    criterion = ChunkedLabelSmoothedCrossEntropy(task, False, 0.1)
    features, sample = (torch.randn(2, 3, 64),), {"target": torch.full((2, 3), 5)}
    with pytest.raises(ValueError, match="^--adaptive-softmax-cutoff with a criterion of logits"):
        criterion.compute_loss(model, features, sample)
    model.decoder.adaptive_softmax = None
    criterion.compute_loss(model, features, sample)


NAMES_LAST_PASS = pytest.mark.skipif(
    not hasattr(torch._C._autograd, "_get_current_graph_task_keep_graph"),
    reason="this torch does not say whether a backward pass is the last one",
)


def product_case(overwrite, **backward):
    """Return the gradients of the factors, and whether the backward pass left the logits."""
    torch.manual_seed(1)
    states = torch.randn(3, 4, 5, requires_grad=True)
    weight = torch.randn(7, 5, requires_grad=True)
    logits = torch.nn.functional.linear(states, weight)  # (B, T, V)
    before = logits.detach().clone()
    flat, targets = logits.flatten(0, 1), torch.tensor([0, 3, PAD] * 4)
    loss, _ = label_smoothed_cross_entropy(flat, targets, 0.1, PAD, overwrite=overwrite)
    loss.sum().backward(**backward)
    if backward:
        loss.sum().backward()
    return states.grad, weight.grad, torch.equal(logits, before)


@NAMES_LAST_PASS
def test_the_gradient_takes_the_place_of_logits_of_a_product():
    expected, overwritten = product_case(overwrite=False), product_case(overwrite=True)
    assert all(map(torch.equal, overwritten[:2], expected[:2]))
    assert expected[2] and not overwritten[2]


def test_a_graph_can_be_retained():
    once, twice = product_case(overwrite=True), product_case(overwrite=True, retain_graph=True)
    torch.testing.assert_close(twice[:2], (2 * once[0], 2 * once[1]))


def test_logits_that_another_gradient_needs_are_left():
    """log_softmax reads its own result in the backward pass."""
    scores = torch.randn(4, 6, requires_grad=True)
    logits = scores.log_softmax(dim=1)
    before = logits.detach().clone()
    loss, _ = label_smoothed_cross_entropy(logits, torch.arange(4), 0.1, PAD, overwrite=True)
    loss.sum().backward()
    assert torch.equal(logits, before)


@NAMES_LAST_PASS
def test_a_later_use_of_overwritten_logits_is_an_error():
    """Autograd goes through the graph from its newest node on."""
    states, weight = torch.randn(4, 5), torch.randn(6, 5, requires_grad=True)
    logits = states @ weight.t()
    squares = logits.pow(2).sum()
    loss, _ = label_smoothed_cross_entropy(logits, torch.arange(4), 0.1, PAD, overwrite=True)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        (squares + loss.sum()).backward()
