"""Error rates, perplexities, and how sure a difference between two error rates is."""

import json
import math

from recipe_tools import RecipeError
from recipe_tools.files import lines_of, written
from recipe_tools.scores import UPDATES, sentence_lines


def error_rate(hypotheses, references):
    """Return the percentage of lines that differ. RecipeError for files of different length."""
    wrong = mistakes(hypotheses, references)
    return 100 * sum(wrong) / len(wrong)


def mistakes(hypotheses, references):
    """Return for each line whether it differs from its reference."""
    hypothesis_lines, reference_lines = list(lines_of(hypotheses)), list(lines_of(references))
    if len(hypothesis_lines) != len(reference_lines) or not hypothesis_lines:
        raise RecipeError(
            f"{hypotheses} has {len(hypothesis_lines)} lines and {references} "
            f"{len(reference_lines)}; both must have the same number of lines, at least 1"
        )
    return [
        hypothesis != reference for hypothesis, reference in zip(hypothesis_lines, reference_lines)
    ]


def likelihoods(log, count):
    """Return [(nats, tokens)] of each reference, from fairseq-generate --score-reference.

    It prints the base-2 logarithm of each token; the end of the text is one.
    """
    rows = [list(map(float, text.split())) for text in sentence_lines(log, "P", count)]
    return [(-math.log(2) * sum(row), len(row)) for row in rows]


def write_likelihoods(path, count, log):
    """Write a line for each of the `likelihoods`."""
    rows = likelihoods(log, count)
    with written(path) as stream:
        stream.writelines(f"{nats!r} {tokens}\n" for nats, tokens in rows)


def perplexity(path):
    """Return exp(-sum log P(x|y) / sum N) of what `write_likelihoods` wrote (Sec. 4.2)."""
    rows = [line.split() for line in lines_of(path)]
    return math.exp(sum(float(nats) for nats, _ in rows) / sum(int(n) for _, n in rows))


def updates_of(log):
    """Return the updates at the end of a fairseq-train log. Raises RecipeError if it has none."""
    updates = UPDATES.findall(log.read_text(encoding="utf-8", errors="replace"))
    if not updates:
        raise RecipeError(f"{log}: it has no num_updates")
    return int(updates[-1])


def best_alpha(table):
    """Return the alpha of a tune-alpha table with the best accuracy; of ties, nearest to 1."""
    rows = [line.split("\t") for line in list(lines_of(table))[1:]]
    return max((float(score), float(alpha)) for alpha, score, _ in rows)[1]


def mcnemar(first, second):
    """Return p of the exact two-sided McNemar test of two lists of mistakes on the same lines."""
    only_first = sum(
        wrong_first and not wrong_second for wrong_first, wrong_second in zip(first, second)
    )
    only_second = sum(
        wrong_second and not wrong_first for wrong_first, wrong_second in zip(first, second)
    )
    total, fewer = only_first + only_second, min(only_first, only_second)
    tail, ways = 0, 1
    for count in range(fewer + 1):
        tail += ways
        ways = ways * (total - count) // (count + 1)
    return min(1.0, 2 * tail / 2**total)


def write_result(path, result):
    with written(path) as stream:
        json.dump(result, stream, indent=1)
