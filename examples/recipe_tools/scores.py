"""Reading what fairseq printed, and scoring plain translations with sacrebleu."""

import math
import re
import statistics

from . import RecipeError
from .files import lines_of

METRICS = {"bleu": "BLEU", "chrf": "chrF", "bleu_lower": "BLEU, lower-cased"}
RESAMPLES = 1000
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


def seconds_per_update(log):
    """(mean seconds of training per update, number of updates), see `whole_epochs`."""
    whole, _, updates = whole_epochs(log)
    seconds, counted = map(sum, zip(*whole.values()))
    return seconds / counted, updates


def sentence_lines(log, mark, count):
    """The text after the sentence number of the first `mark` line of each sentence, in order.

    log: output of fairseq-generate. mark: "D" for plain text, "P" for scores of the tokens, ...
    count: number of sentences of the set.
    Raises RecipeError when some are missing (fairseq skips sentences over its length limits).
    """
    found = {}
    with open(log, encoding="utf-8", errors="replace", newline="\n") as lines:
        for line in lines:
            if line.startswith(f"{mark}-"):
                number, _, text = line.rstrip("\n")[2:].partition("\t")
                found.setdefault(int(number), text)
    if sorted(found) != list(range(count)):
        missing = sorted(set(range(count)) - set(found))
        raise RecipeError(
            f"{log}: {len(found)} translations of {count} sentences; without one: "
            f"{', '.join(str(number + 1) for number in missing[:10]) or 'none'} (line numbers)"
        )
    return [found[number] for number in range(count)]


def translations(log, count):
    """The best translation of each sentence, in order, from the output of fairseq-generate."""
    return [text.partition("\t")[2] for text in sentence_lines(log, "D", count)]


def log_likelihoods(log, count):
    """Natural log-probability of each reference, from fairseq-generate --score-reference.

    It prints the base-2 logarithm of each token, the end of the sentence included.
    """
    tokens = sentence_lines(log, "P", count)
    return [math.log(2) * sum(map(float, text.split())) for text in tokens]


def make_metrics():
    """{name: a fresh sacrebleu metric}; the names are those of `METRICS`."""
    from sacrebleu.metrics import BLEU, CHRF

    return {"bleu": BLEU(), "chrf": CHRF(), "bleu_lower": BLEU(lowercase=True)}


def read_aligned(hypotheses, references):
    """Lines of both files. Raises RecipeError when their numbers differ."""
    sides = [list(lines_of(path)) for path in (hypotheses, references)]
    if len(sides[0]) != len(sides[1]):
        raise RecipeError(
            f"{hypotheses} has {len(sides[0])} lines and {references} {len(sides[1])}"
        )
    return sides


def score(hypotheses, references):
    """({metric: value}, {metric: signature}) of a file of translations, percent."""
    lines, wanted = read_aligned(hypotheses, references)
    values, signatures = {}, {}
    for name, metric in make_metrics().items():
        values[name] = metric.corpus_score(lines, [wanted]).score
        signatures[name] = str(metric.get_signature())
    return values, signatures


def compare(baseline, system, references):
    """Paired bootstrap of two files of translations: ({metric: difference and p}, signatures).

    The p-value is sacrebleu's: the share of resamples whose absolute difference, less the mean of
    all of them, is larger than the one observed. It is one-sided: about half of that of a
    two-sided test. Two files with the same score get 1, for which sacrebleu says 1/1001.
    Metrics: bleu and chrf.
    """
    from sacrebleu.significance import PairedTest

    first, wanted = read_aligned(baseline, references)
    second, _ = read_aligned(system, references)
    metrics = {name: metric for name, metric in make_metrics().items() if name != "bleu_lower"}
    test = PairedTest([("baseline", first), ("system", second)], metrics, [wanted], "bs", RESAMPLES)
    signatures, table = test()
    found = {}
    for name, printed in (("bleu", "BLEU"), ("chrf", "chrF2")):
        before, after = table[printed]
        difference = after.score - before.score
        found[name] = {"difference": difference, "p": after.p_value if difference else 1.0}
    return found, {name: str(signature) for name, signature in signatures.items()}
