"""The loss of an adaptive softmax is -log p of the words, in each of its clusters."""

from types import SimpleNamespace

import pytest
import torch
from common.float16 import FLOAT16
from fairseq.criterions.adaptive_loss import AdaptiveLoss
from fairseq.criterions.cross_entropy import CrossEntropyCriterion
from fairseq.criterions.label_smoothed_cross_entropy import (
    LabelSmoothedCrossEntropyCriterion as Smoothed,
)
from fairseq.modules import AdaptiveInput, AdaptiveSoftmax

VOCABULARY, WIDTH, PAD = 14, 6, 1


class Model(torch.nn.Module):
    """The adaptive softmax of given states; its clusters are 0-4, 5-8 and 9-13."""

    def __init__(self, cutoff=(5, 9)):
        super().__init__()
        torch.manual_seed(1)
        softmax = AdaptiveSoftmax(VOCABULARY, WIDTH, list(cutoff), dropout=0.0, factor=1.0)
        self.decoder = torch.nn.Module()
        self.decoder.adaptive_softmax = softmax.double()
        self.states = torch.nn.Parameter(torch.randn(3, 7, WIDTH, dtype=torch.double))

    def forward(self):
        return self.states, None

    def get_targets(self, sample, output):
        return sample["target"]


def log_probabilities(model):
    """log p of all words (3, 7, V); in a cluster log p(cluster) + log p(word in the cluster)."""
    softmax = model.decoder.adaptive_softmax
    head = (model.states @ softmax.head.weight.T).log_softmax(-1)
    first = softmax.cutoff[0]
    parts = [head[..., :first]]
    for index, (narrow, _, widen) in enumerate(softmax.tail):
        inside = (model.states @ narrow.weight.T @ widen.weight.T).log_softmax(-1)
        parts.append(head[..., first + index, None] + inside)
    return torch.cat(parts, -1)


def criterion(sentence_avg=False, pad=PAD):
    dictionary = SimpleNamespace(pad=lambda: pad)
    return AdaptiveLoss(SimpleNamespace(target_dictionary=dictionary), sentence_avg)


@pytest.fixture(params=[(5, 9), (5, 6, 8), (1, 9), (14,)])
def model(request):
    return Model(request.param)


def targets():
    """Every word but padding, and padding behind the sentences: 13 of 21."""
    words = [word for word in range(VOCABULARY) if word != PAD]
    rows = [words[:7], words[7:11], words[11:]]
    return torch.tensor([row + [PAD] * (7 - len(row)) for row in rows])


def expected_losses(model, target):
    losses = -log_probabilities(model).gather(-1, target[..., None])[..., 0]
    return losses.masked_fill(target.eq(PAD), 0)


@pytest.mark.parametrize("sentence_avg, size", [(False, 13), (True, 3)])
def test_the_loss_counts_every_word_once(model, sentence_avg, size):
    target = targets()
    loss, sample_size, logged = criterion(sentence_avg)(model, {"net_input": {}, "target": target})
    assert loss.item() == pytest.approx(expected_losses(model, target).sum().item(), rel=1e-12)
    assert (sample_size, logged["sample_size"]) == (size, size)
    assert (logged["ntokens"], logged["nsentences"], logged["loss"]) == (13, 3, loss)


def test_each_token_has_its_loss(model):
    target = targets()
    losses, _, _ = criterion()(model, {"net_input": {}, "target": target}, reduce=False)
    assert torch.allclose(losses, expected_losses(model, target).view(-1), rtol=1e-12)


def test_the_gradient_is_that_of_the_probabilities(model):
    target, parameters = targets(), list(model.parameters())
    loss, _, _ = criterion()(model, {"net_input": {}, "target": target})
    gradients = torch.autograd.grad(loss, parameters)
    expected = torch.autograd.grad(expected_losses(model, target).sum(), parameters)
    for gradient, same in zip(gradients, expected):
        assert torch.allclose(gradient, same, rtol=1e-10, atol=1e-12)


def test_search_has_the_same_probabilities(model):
    with torch.no_grad():
        scores = model.decoder.adaptive_softmax.get_log_prob(model.states, None)
    assert torch.allclose(scores, log_probabilities(model), rtol=1e-12)


def test_padding_alone_has_no_loss(model):
    loss, size, _ = criterion()(model, {"net_input": {}, "target": torch.full((3, 7), PAD)})
    assert (loss.item(), size) == (0, 0)


def test_a_model_without_an_adaptive_softmax_is_refused():
    model = SimpleNamespace(decoder=SimpleNamespace(adaptive_softmax=None))
    with pytest.raises(ValueError, match="adaptive_loss: .*; add --adaptive-softmax-cutoff"):
        criterion()(model, {"net_input": {}, "target": targets()})


@pytest.mark.parametrize("criterion_class", [CrossEntropyCriterion, Smoothed])
def test_other_criteria_do_not_train_it(criterion_class):
    task = SimpleNamespace(target_dictionary=SimpleNamespace(pad=lambda: PAD))
    more = [0.1] if criterion_class is Smoothed else []
    with pytest.raises(ValueError, match="cross_entropy with --adaptive-softmax-cutoff; allowed"):
        criterion_class(task, False, *more)(Model().train(), {"net_input": {}, "target": targets()})


@pytest.mark.parametrize("cutoff", [[9, 5], [5, 5], [0, 5], [-2], [5, 15]])
def test_clusters_are_parts_of_the_dictionary(cutoff):
    shown = ",".join(map(str, cutoff))
    allowed = f"cutoff {shown}: allowed: numbers that rise, from 1 to the dictionary's 14"
    with pytest.raises(ValueError, match=f"--adaptive-softmax-{allowed}"):
        AdaptiveSoftmax(VOCABULARY, WIDTH, cutoff, dropout=0.0)
    with pytest.raises(ValueError, match=f"--adaptive-input-{allowed}"):
        AdaptiveInput(VOCABULARY, PAD, WIDTH, 2.0, WIDTH, cutoff)


@pytest.mark.parametrize(
    "half", [pytest.param(torch.float16, marks=FLOAT16), torch.bfloat16], ids=str
)
@pytest.mark.parametrize("reduce", [True, False])
def test_sums_are_in_single_precision(half, reduce):
    """Of 42,000 tokens: the loss is more than the 65,504 that float16 has."""
    model = Model()
    repeated = model.states.detach().repeat(1000, 2, 1).to(half)
    model.states = torch.nn.Parameter(repeated)
    sample = {"net_input": {}, "target": targets().flip(0).repeat(1000, 2)}
    loss, _, logged = criterion()(model.to(half), sample, reduce)
    expected = expected_losses(model.double(), sample["target"])
    assert expected.sum() > 65_504
    assert loss.dtype == logged["loss"].dtype == torch.float32
    # every logit is rounded
    assert loss.double().sum().item() == pytest.approx(expected.sum().item(), rel=1e-3)
    loss.sum().backward()
    assert model.states.grad.isfinite().all()
