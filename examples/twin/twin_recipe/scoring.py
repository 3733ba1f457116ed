"""Scores of one run from the files that evaluate.py wrote."""

import numpy as np
from recipe_tools.commands import run_name
from recipe_tools.files import lines_of
from recipe_tools.scores import RESAMPLES

from fairseq_ext.tools.evaluate.scores import Scored, paired_test, resample


def statistics(metric, run, split, references):
    """Return (N, K) sums of each item of a set. references: file with a line for each item."""
    lines = list(lines_of(run / f"{split}.{metric.source}"))
    reference_lines = list(lines_of(references))
    return metric.statistics(lines, reference_lines)


def scores(metrics, run, split, references):
    """Return {metric: value}."""
    return {
        metric.name: metric.score(statistics(metric, run, split, references).sum(axis=0))
        for metric in metrics
    }


def compare(metric, runs, baseline, system, seeds, references):
    """Return {"difference": of the means over seeds, "p": by paired bootstrap, "by_seed": [..]}."""

    def of_all_seeds(name):
        folders = (runs / run_name(name, seed) for seed in seeds)
        return [statistics(metric, folder, "test", references) for folder in folders]

    sums = [of_all_seeds(name) for name in (baseline, system)]
    resamples = resample(len(sums[0][0]), RESAMPLES)
    first, *rest = paired_test(metric, *(Scored(metric, many, resamples) for many in sums))
    return {**first, "by_seed": [test["difference"] for test in rest or [first]]}


def parameters_of(checkpoint):
    """Return {"model", "criterion": scalars} of a checkpoint; the criterion's are for training."""
    import torch

    state = torch.load(checkpoint, map_location="cpu", weights_only=True)
    return {
        part: int(np.sum([tensor.numel() for tensor in (state[part] or {}).values()]))
        for part in ("model", "criterion")
    }
