"""The mean of the probabilities of several models."""

import math

import torch

from fairseq_ext.common.ensembles import mean_log_probs


def mean_of(log_probs):
    """That of models with these log P, all of which are asked in evaluation mode."""
    models = [torch.nn.Identity() for _ in log_probs]
    by_model = dict(zip(models, log_probs))

    def asked(model):
        assert not any(other.training for other in models)
        return by_model[model]

    return mean_log_probs(models, asked)


def test_the_mean_is_of_probabilities():
    parts = [torch.tensor([[0.5, 0.25]]), torch.tensor([[0.1, 0.75]]), torch.tensor([[0.3, 0.5]])]
    mean = mean_of([part.log() for part in parts])
    torch.testing.assert_close(mean.exp(), torch.tensor([[0.3, 0.5]]))


def test_of_one_model_nothing_changes():
    log_probs = torch.randn(2, 3).log_softmax(dim=1)
    torch.testing.assert_close(mean_of([log_probs]), log_probs)


def test_no_probability_is_lost():
    """exp(-200) is zero in single precision; half of it has a logarithm all the same."""
    log_probs = [torch.tensor([-200.0]), torch.tensor([-math.inf])]
    torch.testing.assert_close(mean_of(log_probs), torch.tensor([-200 - math.log(2)]))
