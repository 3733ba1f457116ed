"""The loss of nat_loss is a mean in single precision, whatever the type of the logits."""

import pytest
import torch
from fairseq.criterions.nat_loss import LabelSmoothedDualImitationCriterion


@pytest.fixture
def criterion():
    return LabelSmoothedDualImitationCriterion(None, 0.0)


def expected_loss(logits, target, mask, smoothing):
    log_p = logits.log_softmax(-1)[mask]
    nll = -log_p.gather(1, target[mask][:, None]).mean()
    return nll, (1 - smoothing) * nll - smoothing * log_p.mean()


@pytest.mark.parametrize("kind", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_mean_is_not_rounded(kind, smoothing, criterion):
    torch.manual_seed(1)
    logits = torch.randn(5, 7, 90).to(kind).requires_grad_()
    target, mask = torch.randint(90, (5, 7)), torch.rand(5, 7) > 0.4
    result = criterion._compute_loss(logits, target, mask, label_smoothing=smoothing, factor=2)
    nll, loss = expected_loss(logits.detach().double(), target, mask, smoothing)
    assert result["nll_loss"].item() == pytest.approx(nll.item(), rel=1e-6)
    assert result["loss"].item() == pytest.approx(2 * loss.item(), rel=1e-6)
    assert (result["name"], result["factor"]) == ("loss", 2)
    result["loss"].backward()
    assert logits.grad.dtype == kind and logits.grad[~mask].eq(0).all()
    exact = logits.detach().double().requires_grad_()
    (2 * expected_loss(exact, target, mask, smoothing)[1]).backward()
    torch.testing.assert_close(logits.grad.double(), exact.grad, rtol=0.01, atol=1e-6)


def test_nothing_is_masked(criterion):
    target, mask = torch.zeros(2, 3).long(), torch.zeros(2, 3).bool()
    result = criterion._compute_loss(torch.randn(2, 3, 4).half(), target, mask)
    assert result["loss"] == 0
