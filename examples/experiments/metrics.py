"""What is measured: functions of sums over items, as in fairseq_ext/tools/evaluate/scores.py.

The sums of each item are stored beside a score, so that differences can be tested later.
"""

import math
from typing import Any, Callable, Mapping, Optional, Sequence

import numpy as np

from fairseq_ext.routed import scores as counts
from fairseq_ext.tools.evaluate.scores import METRICS as SACREBLEU
from fairseq_ext.tools.evaluate.scores import Metric, Scorer
from fairseq_ext.twin.metrics import edit_distance

from . import UsageError


def mcnemar(first: np.ndarray, second: np.ndarray) -> float:
    """Return p of the exact two-sided McNemar test of two classifications of N items.

    first, second: (N, 2), in their first column 1 for an item that is right, or wrong. Of the
    items on which only one of them is right, each is as likely to be the better if they are alike.
    """
    apart = first[:, 0] - second[:, 0]
    total, fewer = int(np.abs(apart).sum()), int(min((apart > 0).sum(), (apart < 0).sum()))
    tail, ways = 0, 1
    for count in range(fewer + 1):
        tail += ways
        ways = ways * (total - count) // (count + 1)
    return min(1.0, 2 * tail / 2**total)


class Ratio:
    """A ratio of two sums.

    item: function (hypothesis, reference) -> what a line adds to both. score: function of the
    ratio; percent unless another one is named.
    """

    def __init__(
        self,
        name: str,
        title: str,
        item: Callable[[str, str], Sequence[float]],
        score: Callable[[float], float] = lambda ratio: 100 * ratio,
    ):
        self.name, self.title, self.item, self.of_ratio = name, title, item, score

    def statistics(self, hypotheses: Sequence[str], references: Sequence[str]) -> np.ndarray:
        """Return the sums (N, 2) of N lines."""
        pairs = [self.item(*pair) for pair in zip(hypotheses, references)]
        return np.array(pairs, dtype=np.float64)

    def score(self, sums: np.ndarray) -> float:
        """Return the score of a set whose sums are (2,)."""
        return float(self.of_ratio(sums[0] / sums[1]))

    def signature(self, **more: Any) -> str:
        """Return nothing: the score depends on nothing else."""
        return ""


class SeveralReferences(Metric):
    """A metric of sacrebleu whose references are separated by tabs, as many in every line."""

    def statistics(self, hypotheses: Sequence[str], references: Sequence[str]) -> np.ndarray:
        """Return the (N, K) sums of N lines. Raises UsageError where a line has more references."""
        lines = [line.split("\t") for line in references]
        for number, line in enumerate(lines, start=1):
            if len(line) != len(lines[0]):
                raise UsageError(
                    f"references: line {number} has {len(line)} and the first {len(lines[0])}"
                )
        streams = [list(stream) for stream in zip(*lines)]
        sums = self.metric._extract_corpus_statistics(hypotheses, streams)
        return np.array(sums, dtype=np.float64)


def counted(
    function: Callable[[Sequence[str], Sequence[str]], Mapping[str, int]],
) -> Callable[[str, str], Sequence[float]]:
    """Return what a line adds to "matched" and "total"."""

    def item(hypothesis: str, reference: str) -> Sequence[float]:
        line = function([hypothesis], [reference])
        return line["matched"], line["total"]

    return item


class F1:
    """F1 of what a function of fairseq_ext.routed.scores counts, in percent."""

    def __init__(
        self,
        name: str,
        function: Callable[[Sequence[str], Sequence[str]], Mapping[str, int]],
    ):
        self.name, self.title, self.function = name, "F1", function

    def statistics(self, hypotheses: Sequence[str], references: Sequence[str]) -> np.ndarray:
        """Return how much of N lines was matched, predicted and in the reference: (N, 3)."""
        lines = [self.function([line], [gold]) for line, gold in zip(hypotheses, references)]
        names = ("matched", "predicted", "gold")
        return np.array([[line[name] for name in names] for line in lines], dtype=np.float64)

    def score(self, sums: np.ndarray) -> float:
        """Return the F1 of sums (3,)."""
        names = ("matched", "predicted", "gold")
        return counts.f1({name: int(value) for name, value in zip(names, sums)})

    def signature(self, **more: Any) -> str:
        """Return nothing: the score depends on nothing else."""
        return ""


class Faults(F1):
    """How many lines have a fault that the function counts: ill-formed, or of another length."""

    titles = {"ill_formed": "ill-formed lines", "wrong_length": "of another length"}

    def __init__(
        self, name: str, function: Callable[[Sequence[str], Sequence[str]], Mapping[str, int]]
    ):
        super().__init__(name, function)
        self.fault = name.split("_", 1)[1]
        self.title = self.titles[self.fault]

    def statistics(self, hypotheses: Sequence[str], references: Sequence[str]) -> np.ndarray:
        """Return 1 for each of N lines that has the fault: (N, 1)."""
        lines = [self.function([line], [gold]) for line, gold in zip(hypotheses, references)]
        # tags cannot be ill-formed
        return np.array([[line.get(self.fault, 0)] for line in lines], dtype=np.float64)

    def score(self, sums: np.ndarray) -> float:
        """Return the number of lines, the sum (1,)."""
        return float(sums[0])


def numbers(hypothesis: str, _reference: str) -> Sequence[float]:
    """Return the two numbers of a line: minus the log-probability in nats, and the tokens."""
    nats, tokens = map(float, hypothesis.split())
    return nats, tokens


def exponential(nats: float) -> float:
    """Return e to a power; infinity where that is more than a float holds, as of a diverged run."""
    try:
        return math.exp(nats)
    except OverflowError:
        return math.inf


OWN: list[Scorer] = [
    Ratio("cer", "CER", lambda line, gold: (edit_distance(line, gold), len(gold))),
    Ratio(
        "wer",
        "WER",
        lambda line, gold: (edit_distance(line.split(), gold.split()), len(gold.split())),
    ),
    Ratio("right", "right, %", lambda line, gold: (line in gold.split("\t"), 1)),
    Ratio("error", "error rate", lambda line, gold: (line != gold, 1)),
    Ratio("label", "accuracy", lambda line, gold: (line == gold, 1)),
    Ratio("perplexity", "perplexity", numbers, exponential),
    Ratio("nats", "nats per image", lambda line, _: (numbers(line, "")[0], 1), lambda mean: mean),
    Ratio(
        "likelihood",
        "log-likelihood",
        lambda line, _: (-numbers(line, "")[0], 1),
        lambda mean: mean,
    ),
    Ratio("accuracy", "token accuracy", counted(counts.token_accuracy)),
    Ratio("exact", "exact match", counted(counts.exact_match)),
    F1("ner_f1", counts.ner_f1),
    F1("bracket_f1", counts.bracket_f1),
    Faults("ner_ill_formed", counts.ner_f1),
    Faults("ner_wrong_length", counts.ner_f1),
    Faults("bracket_ill_formed", counts.bracket_f1),
    Faults("bracket_wrong_length", counts.bracket_f1),
]
# titles of what is no count, though it may be a whole number by chance
RATES = {
    *SACREBLEU.values(),
    *(metric.title for metric in OWN if not isinstance(metric, Faults)),
}
# their differences are tested by the McNemar test
CLASSIFICATIONS = ("error",)
NAMES = (*SACREBLEU, "bleu_several", *(metric.name for metric in OWN))


def metric_named(name: str, tokenize: Optional[str] = None) -> Scorer:
    """Return the metric called `name`, one of NAMES; tokenize: sacrebleu's tokeniser of BLEU."""
    if name in SACREBLEU:
        return Metric(name, tokenize)
    if name == "bleu_several":
        return SeveralReferences("bleu", tokenize)
    return next(metric for metric in OWN if metric.name == name)
