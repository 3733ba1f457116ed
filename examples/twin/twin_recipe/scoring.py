"""Scores of one run from the files that evaluate.py wrote."""

import numpy as np
from recipe_tools.commands import run_name
from recipe_tools.files import lines_of
from recipe_tools.scores import RESAMPLES

from fairseq_ext.tools.evaluate_scores import Scored, paired_test, resample


def statistics(metric, run, split, references):
    """(N, K) sums of each item of a set. run: folder. references: file with a line for each."""
    lines, wanted = list(lines_of(run / f"{split}.{metric.source}")), list(lines_of(references))
    return metric.statistics(lines, wanted)


def scores(metrics, run, split, references):
    """{metric: value}."""
    return {
        metric.name: metric.score(statistics(metric, run, split, references).sum(axis=0))
        for metric in metrics
    }


def compare(metric, runs, baseline, system, seeds, references):
    """{"difference": of the means over the seeds on the test set, "p": by paired bootstrap,
    "by_seed": [difference of the runs of each seed]}.
    """

    def of_all_seeds(name):
        folders = (runs / run_name(name, seed) for seed in seeds)
        return [statistics(metric, folder, "test", references) for folder in folders]

    found = [of_all_seeds(name) for name in (baseline, system)]
    resamples = resample(len(found[0][0]), RESAMPLES)
    first, *rest = paired_test(metric, *(Scored(metric, many, resamples) for many in found))
    return {**first, "by_seed": [one["difference"] for one in rest or [first]]}


def parameters_of(checkpoint):
    """{"model", "criterion": scalars} of a checkpoint file; the criterion's are for training."""
    import torch

    state = torch.load(checkpoint, map_location="cpu", weights_only=True)
    return {
        part: int(np.sum([tensor.numel() for tensor in (state[part] or {}).values()]))
        for part in ("model", "criterion")
    }
