"""Scores of plain files: TER and perplexity of translations, and the auxiliary tasks'."""

import math

from recipe_tools.evaluation import make
from recipe_tools.files import lines_of, written
from recipe_tools.scores import read_aligned, sentence_lines

from fairseq_ext.routed import scores as metrics

F1 = {"ner": metrics.ner_f1, "tree": metrics.bracket_f1}


def error_rate(hypotheses, references):
    """Return (TER in percent, signature of sacrebleu)."""
    from sacrebleu.metrics import TER

    lines, reference_lines = read_aligned(hypotheses, references)
    metric = TER()
    return metric.corpus_score(lines, [reference_lines]).score, str(metric.get_signature())


def perplexity(output, command, inputs, source):
    """Return exp(mean negative log-likelihood) of the references' subwords and sentence ends.

    command: fairseq-generate of the set. output: file of the log-probabilities by token.
    """
    count = sum(1 for _ in lines_of(source))

    def finish(log):
        # base-2 logarithms of the tokens
        with written(output) as stream:
            stream.writelines(line + "\n" for line in sentence_lines(log, "P", count))

    make(output, [*command, "--score-reference"], inputs, finish)
    values = [float(word) for line in lines_of(output) for word in line.split()]
    return 2 ** (-math.fsum(values) / len(values))


def auxiliary_scores(task, hypotheses, references):
    """Return {"accuracy", "exact"} in percent.

    Where there is an F1 also "f1", in percent, and the numbers of lines that are "ill_formed" (no
    trees) and of "wrong_length" (trees or tags for more or fewer words).
    """
    lines = read_aligned(hypotheses, references)
    scores = {
        "accuracy": metrics.accuracy(metrics.token_accuracy(*lines)),
        "exact": metrics.accuracy(metrics.exact_match(*lines)),
    }
    if task in F1:
        counts = F1[task](*lines)
        scores["f1"] = metrics.f1(counts)
        scores["ill_formed"] = counts.get("ill_formed", 0)
        scores["wrong_length"] = counts["wrong_length"]
    return scores
