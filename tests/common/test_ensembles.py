"""The mean of the probabilities of several models."""

import math

import torch

from fairseq_ext.common.ensembles import mean_log_probs


def test_the_mean_is_of_probabilities():
    parts = [torch.tensor([[0.5, 0.25]]), torch.tensor([[0.1, 0.75]]), torch.tensor([[0.3, 0.5]])]
    mean = mean_log_probs([part.log() for part in parts])
    torch.testing.assert_close(mean.exp(), torch.tensor([[0.3, 0.5]]))


def test_of_one_model_nothing_changes():
    log_probs = torch.randn(2, 3).log_softmax(dim=1)
    torch.testing.assert_close(mean_log_probs([log_probs]), log_probs)


def test_no_probability_is_lost():
    """exp(-200) is zero in single precision; half of it has a logarithm all the same."""
    log_probs = [torch.tensor([-200.0]), torch.tensor([-math.inf])]
    torch.testing.assert_close(mean_log_probs(log_probs), torch.tensor([-200 - math.log(2)]))
