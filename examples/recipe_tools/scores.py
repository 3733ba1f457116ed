"""Reading what fairseq printed, and scoring plain translations as `fairseq-ext evaluate` does."""

import functools
import math
import re
import statistics

from fairseq_ext.tools import UsageError, evaluate_input
from fairseq_ext.tools.evaluate_scores import METRICS as ALL_METRICS
from fairseq_ext.tools.evaluate_scores import (
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
    """({epoch: (seconds of training, updates)}, last epoch, last update) of fairseq-train's log.

    Only the updates count: no validation, no writing of checkpoints. An epoch that was resumed
    is left out because its time is that of its rest. Raises RecipeError when none ended.
    """
    found, resumed, last, before = {}, set(), 0, 0
    with open(log, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if "Loaded checkpoint" in line:
                resumed.add(last + 1)
            match = EPOCH_END.search(line)
            if match:
                last, updates = int(match.group(1)), UPDATES.search(line)
                total = int(updates.group(1)) if updates else before
                found[last], before = (float(match.group(2)), total - before), total
    whole = {epoch: each for epoch, each in found.items() if epoch not in resumed}
    if not whole:
        raise RecipeError(f"{log}: no epoch of training ended in it")
    return whole, last, before


def seconds_per_epoch(log):
    """(median seconds of training per epoch, number of epochs), see `whole_epochs`."""
    whole, epochs, _ = whole_epochs(log)
    return statistics.median(seconds for seconds, _ in whole.values()), epochs


def seconds_per_update(log, shortest=0):
    """(mean seconds of training per update, number of updates), see `whole_epochs`.

    shortest: least seconds of an epoch; 0.0 is returned where they are shorter on average.
    """
    whole, _, updates = whole_epochs(log)
    seconds, counted = map(sum, zip(*whole.values()))
    return (seconds / counted if seconds >= shortest * len(whole) else 0.0), updates


def told(function):
    """A function of `fairseq-ext`'s tools whose errors are RecipeErrors."""

    @functools.wraps(function)
    def call(*values):
        try:
            return function(*values)
        except UsageError as error:
            raise RecipeError(str(error)) from error

    return call


read_lines = told(evaluate_input.read_lines)
sentence_lines = told(evaluate_input.sentence_lines)


def translations(log, count):
    """The best translation of each sentence, in order, from the output of fairseq-generate."""
    return [text.partition("\t")[2] for text in sentence_lines(log, "D", count)]


def log_likelihoods(log, count):
    """Natural log-probability of each reference, from fairseq-generate --score-reference.

    It prints the base-2 logarithm of each token, the end of the sentence included.
    """
    tokens = sentence_lines(log, "P", count)
    return [math.log(2) * sum(map(float, text.split())) for text in tokens]


def read_aligned(hypotheses, references):
    """Lines of both files. Raises RecipeError when their numbers differ."""
    wanted = read_lines(references)
    return told(evaluate_input.read_hypotheses)(hypotheses, wanted, references), wanted


def score(hypotheses, references):
    """({metric: value}, {metric: signature}) of a file of translations, percent."""
    lines, wanted = read_aligned(hypotheses, references)
    values, signatures = {}, {}
    for metric in map(Metric, METRICS):
        values[metric.name] = metric.score(metric.statistics(lines, wanted).sum(axis=0))
        signatures[metric.name] = metric.signature()
    return values, signatures


def compare(baseline, system, references):
    """Paired bootstrap of two files of translations: ({metric: difference and p}, signatures).

    Metrics: bleu and chrf; see fairseq_ext/tools/evaluate_scores.py for the test.
    """
    first, wanted = read_aligned(baseline, references)
    second, _ = read_aligned(system, references)
    resamples, found, signatures = resample(len(wanted)), {}, {}
    for metric in map(Metric, ("bleu", "chrf")):
        both = (
            Scored(metric, [metric.statistics(lines, wanted)], resamples)
            for lines in (first, second)
        )
        (found[metric.name],) = paired_test(metric, *both)
        signatures[metric.title] = signature_of_test(metric, TEST, RESAMPLES)
    return found, signatures
