"""Reading what fairseq printed, and scoring plain translations as `fairseq-ext evaluate` does."""

import functools
import math
import re
import statistics

from fairseq_ext.tools import UsageError
from fairseq_ext.tools.evaluate import inputs
from fairseq_ext.tools.evaluate.scores import METRICS as ALL_METRICS
from fairseq_ext.tools.evaluate.scores import (
    TESTS,
    Metric,
    Scored,
    paired_test,
    resample,
    signature_of_test,
)

from . import RecipeError

METRICS = {name: ALL_METRICS[name] for name in ("bleu", "chrf", "bleu_lower")}
TEST = "bootstrap"
RESAMPLES = TESTS[TEST]
EPOCH_END = re.compile(r"\| INFO \| train \| epoch (\d+) \|.*\| train_wall (\d+(?:\.\d+)?)")
UPDATES = re.compile(r"\| num_updates (\d+)\b")


def whole_epochs(log):
    """Return ({epoch: (seconds, updates)}, last epoch, last update) of a fairseq-train log.

    Only the updates count: no validation, no writing of checkpoints. An epoch that was resumed
    is left out because its time is that of its rest. Raises RecipeError when none ended.
    """
    epochs, resumed, last, before = {}, set(), 0, 0
    with open(log, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if "Loaded checkpoint" in line:
                resumed.add(last + 1)
            match = EPOCH_END.search(line)
            if match:
                last, updates = int(match.group(1)), UPDATES.search(line)
                total = int(updates.group(1)) if updates else before
                epochs[last], before = (float(match.group(2)), total - before), total
    whole = {epoch: timing for epoch, timing in epochs.items() if epoch not in resumed}
    if not whole:
        raise RecipeError(f"{log}: it has no finished training epoch")
    return whole, last, before


def seconds_per_epoch(log):
    """Return (median seconds of training per epoch, number of epochs), see `whole_epochs`."""
    whole, epochs, _ = whole_epochs(log)
    return statistics.median(seconds for seconds, _ in whole.values()), epochs


def seconds_per_update(log, shortest=0):
    """Return (mean seconds of training per update, number of updates), see `whole_epochs`.

    shortest: least seconds of an epoch; 0.0 is returned where they are shorter on average.
    """
    whole, _, updates = whole_epochs(log)
    seconds, counted = map(sum, zip(*whole.values()))
    return (seconds / counted if seconds >= shortest * len(whole) else 0.0), updates


def told(function):
    """Return a function of `fairseq-ext`'s tools whose errors are RecipeErrors."""

    @functools.wraps(function)
    def call(*values):
        try:
            return function(*values)
        except UsageError as error:
            raise RecipeError(str(error)) from error

    return call


read_lines = told(inputs.read_lines)
sentence_lines = told(inputs.sentence_lines)


def translations(log, count):
    """Return the best translation of each sentence, in order, from fairseq-generate's output."""
    return [text.partition("\t")[2] for text in sentence_lines(log, "D", count)]


def log_likelihoods(log, count):
    """Return the natural log-probability of each reference, from fairseq-generate's output.

    It prints the base-2 logarithm of each token, the end of the sentence included.
    """
    tokens = sentence_lines(log, "P", count)
    return [math.log(2) * sum(map(float, text.split())) for text in tokens]


def read_aligned(hypotheses, references):
    """Return the lines of both files. Raises RecipeError when their numbers differ."""
    reference_lines = read_lines(references)
    return told(inputs.read_hypotheses)(hypotheses, reference_lines, references), reference_lines


def score(hypotheses, references):
    """Return ({metric: value}, {metric: signature}) of a file of translations, percent."""
    lines, reference_lines = read_aligned(hypotheses, references)
    values, signatures = {}, {}
    for metric in map(Metric, METRICS):
        values[metric.name] = metric.score(metric.statistics(lines, reference_lines).sum(axis=0))
        signatures[metric.name] = metric.signature()
    return values, signatures


def compare(baseline, system, references):
    """Compare two files of translations by paired bootstrap: ({metric: result}, signatures).

    Metrics: bleu and chrf; see fairseq_ext/tools/evaluate/scores.py for the test.
    """
    first, reference_lines = read_aligned(baseline, references)
    second, _ = read_aligned(system, references)
    resamples, tests, signatures = resample(len(reference_lines)), {}, {}
    for metric in map(Metric, ("bleu", "chrf")):
        both = (
            Scored(metric, [metric.statistics(lines, reference_lines)], resamples)
            for lines in (first, second)
        )
        (tests[metric.name],) = paired_test(metric, *both)
        signatures[metric.title] = signature_of_test(metric, TEST, RESAMPLES)
    return tests, signatures
