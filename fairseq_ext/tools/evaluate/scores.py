"""Scores of translations with sacrebleu (and COMET), their confidence and their differences.

Every metric is a function of sums over sentences (n-gram matches, edits ...). Resampling sentences
is therefore a matrix product: (resamples, N) counts times (N, K) sums of each sentence. With one
run of each system the results are those of sacrebleu, but for equal differences (see `p_value`);
several runs (seeds) of a system share their resamples, and what is resampled is the mean of their
scores.
"""

import math
from typing import Any, Dict, List, Optional, Protocol, Sequence

import numpy as np

from ...compat.generation.word_blanks import any_of, lacks_blanks, tokenisers_for
from .. import UsageError

METRICS = {"bleu": "BLEU", "chrf": "chrF", "ter": "TER", "bleu_lower": "BLEU, lower-cased"}
BLEU_NAMES = ("bleu", "bleu_lower")
TESTS = {"bootstrap": 1000, "randomisation": 10000}
# sacrebleu's
RANDOM_SEED = 12345
# relative: differences that are equal but for the rounding of their sums
ROUNDING = 1e-9
# exchanges that are in memory at once, as a matrix (TRIALS, N) of float64
TRIALS = 200


class Scorer(Protocol):
    """What ``Scored`` and the tests need of a metric: ``Metric``, ``Comet``, or one of a recipe."""

    name: str
    title: str

    def statistics(self, hypotheses: Sequence[str], references: Sequence[str]) -> np.ndarray:
        """Return the (N, K) sums of N pairs of lines."""

    def score(self, sums: np.ndarray) -> float:
        """Return the score of a corpus whose sums are (K,)."""

    def signature(self, **more: Any) -> str:
        """Return what the scores depend on, with further entries such as seed=12345."""


class Metric:
    """One of METRICS; its statistics are the (N, K) sums of each sentence.

    tokenize: tokeniser of BLEU, sacrebleu's default where it is None.
    """

    def __init__(self, name: str, tokenize: Optional[str] = None):
        from sacrebleu.metrics import BLEU, CHRF, TER

        self.name, self.title = name, METRICS[name]
        self.metric: Any
        if name in BLEU_NAMES:
            if tokenize not in (None, *BLEU.TOKENIZERS):
                raise UsageError(
                    f"--tokenize {tokenize}: sacrebleu has {', '.join(sorted(BLEU.TOKENIZERS))}"
                )
            try:
                self.metric = BLEU(lowercase=name == "bleu_lower", tokenize=tokenize)
            except (RuntimeError, OSError) as error:  # packages or files of a tokeniser
                raise UsageError(f"--tokenize {tokenize}: {error}") from error
        else:
            self.metric = CHRF() if name == "chrf" else TER()

    def statistics(self, hypotheses: Sequence[str], references: Sequence[str]) -> np.ndarray:
        """Return the (N, K) sums of N pairs of lines."""
        # private, but the only way to the sums of each sentence,
        # on which sacrebleu's own tests rest
        sums = self.metric._extract_corpus_statistics(hypotheses, [references])
        return np.array(sums, dtype=np.float64)

    def is_blind(self, references: Sequence[str]) -> bool:
        """True if it counts words, and its tokeniser leaves lines without blanks whole."""
        counts_words = self.name != "chrf"
        if not counts_words or not lacks_blanks(references):
            return False
        return lacks_blanks(map(self.metric.tokenizer, references))

    def score(self, sums: np.ndarray) -> float:
        """Return the score of a corpus whose sums are (K,), in percent."""
        return float(self.metric._compute_score_from_stats(list(sums)).score)

    def signature(self, **more: Any) -> str:
        """Return sacrebleu's signature, with further entries such as seed=12345."""
        signature = self.metric.get_signature()
        for name, value in more.items():
            signature.update(name, value)
        return str(signature)


def warnings_of_blanks(
    metrics: Sequence[Metric], references: Sequence[str], path: str, language: str = ""
) -> List[str]:
    """Return warnings of metrics for which each line of the references is one word.

    path: of the references. language: the ending of their file, where --tokenize names it.
    """
    blind = [metric.name for metric in metrics if metric.is_blind(references)]
    warnings = []
    if set(blind) & set(BLEU_NAMES):
        prefix = f"{language}=" if language else ""
        names = any_of([f"{prefix}{name}" for name in tokenisers_for(references)])
        warnings.append(f"which BLEU counts; --tokenize {names} cuts the texts")
    if "ter" in blind:
        warnings.append("which TER counts; chrF counts characters")
    return [f"warning: {path}: no blanks between words, {warning}" for warning in warnings]


class Comet:
    """The metric COMET: the mean of a model's scores of the sentences, times 100.

    model: name on the Hugging Face hub, or path of a .ckpt file. sources: lines that were
    translated. Raises UsageError where the package is missing or has no such model.
    """

    name, title = "comet", "COMET"

    def __init__(self, model: str, sources: Sequence[str]):
        try:
            import comet
        except ImportError as error:
            raise UsageError(
                "--comet needs the package comet; install it: pip install unbabel-comet"
            ) from error
        try:
            path = model if model.endswith(".ckpt") else comet.download_model(model)
            self.model, self.sources = comet.load_from_checkpoint(path), sources
        except Exception as error:  # whatever the package and the hub raise
            raise UsageError(f"--comet {model}: {type(error).__name__}: {error}") from error
        self.label = f"model:{model}|version:{getattr(comet, '__version__', 'unknown')}"

    def statistics(self, hypotheses: Sequence[str], references: Sequence[str]) -> np.ndarray:
        """Return (N, 2): the score of each sentence, and 1."""
        import torch

        lines = zip(self.sources, hypotheses, references)
        items = [{"src": source, "mt": line, "ref": reference} for source, line, reference in lines]
        scores = self.model.predict(items, batch_size=16, gpus=int(torch.cuda.is_available()))
        scores = np.array(scores["scores"], dtype=np.float64)
        return np.stack([scores, np.ones_like(scores)], axis=1)

    def score(self, sums: np.ndarray) -> float:
        """Return the mean score, times 100."""
        return float(100 * sums[0] / sums[1])

    def signature(self, **more: Any) -> str:
        """Return the model and the version of the package, after further entries."""
        return "|".join([*(f"{name}:{value}" for name, value in more.items()), self.label])


def scores_of(metric: Scorer, sums: np.ndarray) -> np.ndarray:
    """Return the scores (R,) of sums (R, K)."""
    return np.array([metric.score(row) for row in sums])


def resample(sentences: int, number: int = TESTS["bootstrap"]) -> np.ndarray:
    """Return (R, N) bootstrap resamples of N sentences, the counts of each; always the same.

    The generator is NumPy's with sacrebleu's seed, so that the results of one run of each system
    are those of sacrebleu.

    Args:
        sentences: N.
        number: R.
    """
    # (R, N) sentences, with repetition
    drawn = np.random.default_rng(RANDOM_SEED).choice(sentences, size=(number, sentences))
    return np.stack([np.bincount(row, minlength=sentences) for row in drawn])


class Scored:
    """The runs of one system under one metric.

    runs: the statistics of n runs, each (N, K). resamples: see `resample`.
    values: n scores. samples: (n, R), the scores of each run on the resamples.
    """

    def __init__(self, metric: Scorer, runs: Sequence[np.ndarray], resamples: np.ndarray):
        self.runs = runs
        self.values = [metric.score(run.sum(axis=0)) for run in runs]
        # counts (R, N) @ sums (N, K)
        self.samples = np.stack([scores_of(metric, resamples @ run) for run in runs])

    @property
    def mean(self) -> float:
        """Return the mean score of the runs."""
        return float(np.mean(self.values))

    def interval(self) -> float:
        """Return half the width of the 95% confidence interval of the mean over the runs.

        It is about the choice of sentences; how runs differ is seen in their values.
        """
        scores = np.sort(self.samples.mean(axis=0))
        cut = len(scores) // 40  # 2.5% at each end
        return float(scores[-1 - cut] - scores[cut]) / 2


def chance_of_resampling(baseline: Scored, system: Scored) -> List[np.ndarray]:
    """Return what sampling sentences makes of a difference: [(R,) of the means, of each pair ...].

    Paired bootstrap. Source: Koehn 2004, as in sacrebleu: the absolute differences of the
    resamples, less their mean. One-sided: about half of a two-sided p-value.
    """
    before, after = baseline.samples, system.samples
    apart = [np.abs(after.mean(axis=0) - before.mean(axis=0))]
    if len(before) == len(after):  # run i of one is paired with run i of the other
        apart += list(np.abs(after - before))
    return [differences - differences.mean() for differences in apart]


def chance_of_exchange(
    metric: Scorer, baseline: Scored, system: Scored, number: int
) -> List[np.ndarray]:
    """Return the same by paired approximate randomisation; two-sided, as many runs of both systems.

    Source: Riezler and Maxwell 2005, over several runs Clark et al. 2011: where the systems are
    alike, exchanging their translations of a sentence, in all runs, changes nothing.
    number: R, of exchanges that are tried.
    """
    sentences = len(system.runs[0])
    rng = np.random.default_rng(RANDOM_SEED)
    blocks = []
    for start in range(0, number, TRIALS):
        # (r, N): True = the sentence is exchanged
        drawn = rng.integers(2, size=(min(TRIALS, number - start), sentences), dtype=bool)
        apart = []
        for before, after in zip(baseline.runs, system.runs):
            # sums of both after the exchange: what is drawn comes from the baseline
            first = scores_of(metric, drawn @ before + ~drawn @ after)
            second = scores_of(metric, drawn @ after + ~drawn @ before)
            apart.append(first - second)
        blocks.append(apart)
    # (runs, R)
    together = np.concatenate(blocks, axis=1)
    return [np.abs(differences) for differences in (together.mean(axis=0), *together)]


def p_value(chance: np.ndarray, difference: float) -> float:
    """Return the share of differences by chance (R,) that reach the observed one; 1 where it is 0.

    The observed one is counted as one of them, so that no p-value is 0. NaN, of a run that
    diverged, has none.

    Deviation: sacrebleu counts those above the observed one alone. An exchange often yields the
    very same difference, where few sentences are translated differently, and a system that differs
    in a single sentence would have the lowest p-value that there is.
    """
    if math.isnan(difference):
        return math.nan
    if not difference:
        return 1.0
    reached = chance >= abs(difference) * (1 - ROUNDING)
    return float(np.sum(reached) + 1) / (len(chance) + 1)


def paired_test(
    metric: Scorer,
    baseline: Scored,
    system: Scored,
    test: str = "bootstrap",
    number: int = TESTS["bootstrap"],
) -> List[Dict[str, float]]:
    """Return [{"difference": system less baseline, "p"}] of two `Scored` over the same sentences.

    The first is of their means; where both have as many runs, more than one, those of each pair
    of runs follow. test: one of TESTS. number: of exchanges of a randomisation test.
    """
    differences = [system.mean - baseline.mean]
    if len(baseline.values) == len(system.values) > 1:
        differences += [after - before for before, after in zip(baseline.values, system.values)]
    if test == "bootstrap":
        chances = chance_of_resampling(baseline, system)
    else:
        chances = chance_of_exchange(metric, baseline, system, number)
    return [
        {"difference": difference, "p": p_value(chance, difference)}
        for difference, chance in zip(differences, chances)
    ]


def signature_of_test(metric: Scorer, test: str, number: int) -> str:
    """Return the metric's signature with the kind of test, its number of samples and the seed."""
    kind = {"bootstrap": "bs", "randomisation": "ar"}[test]  # sacrebleu's abbreviations
    return metric.signature(**{kind: number, "seed": RANDOM_SEED})
