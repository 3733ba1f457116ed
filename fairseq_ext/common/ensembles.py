"""The distribution of several models together."""

import math
from typing import Callable, Sequence

import torch
from fairseq.models import BaseFairseqModel
from torch import Tensor


def mean_log_probs(
    models: Sequence[BaseFairseqModel], log_probs: Callable[[BaseFairseqModel], Tensor]
) -> Tensor:
    """Return the logarithm of the mean probability; the models are set to evaluation.

    The mean is taken in logarithms: a probability below 1e-45 would be zero in single precision.

    log_probs: model -> log P, of one shape for all models, which the result has too.
    """
    for model in models:
        model.eval()  # as fairseq's searches do
    of_models = torch.stack([log_probs(model) for model in models])
    return of_models.logsumexp(dim=0) - math.log(len(models))
