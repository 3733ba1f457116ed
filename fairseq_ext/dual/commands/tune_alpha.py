"""`fairseq-ext tune-alpha`: choose alpha of dual inference on the validation set (Eq. 7).

The n-best lists do not depend on alpha: they are made and scored once, by fairseq-generate's
options, and reranked for every alpha.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Iterable, List, NamedTuple, Sequence

import numpy as np

from ...compat.generation.word_blanks import lacks_blanks
from ...tools import AddValues, UsageError, atomic_path, check_apart
from ...tools.curves.figures import SUFFIXES, legends_below, new_figure, save, write_table
from ...tools.evaluate.inputs import read_lines
from ...tools.evaluate.report import markdown_table
from ...tools.evaluate.scores import BLEU_NAMES, METRICS, Metric, Scorer
from .nbest_lists import FAULTY, Candidate, nbest_lists, ranking_config

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ALPHAS = [number / 10 for number in range(11)]
# the only metric of which less is better
LOWER = "ter"


class Accuracy:
    """Share of lines that are equal to the reference, in percent: a ``Scorer`` for labels."""

    name, title = "accuracy", "accuracy"

    def statistics(self, hypotheses: Sequence[str], references: Sequence[str]) -> np.ndarray:
        """Return (N, 2): 1 for a line that is right, else 0; and 1."""
        return np.array([[line == right, 1] for line, right in zip(hypotheses, references)], int)

    def score(self, sums: np.ndarray) -> float:
        """Return the accuracy of a set whose sums are (2,), in percent."""
        right, lines = sums
        return 100 * right / lines

    def signature(self, **_unused: Any) -> str:
        """Return how the lines are compared."""
        return "lines equal to the reference, percent"


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options; the words after -- are those of fairseq-generate."""
    parser.add_argument(
        "--ref", required=True, metavar="FILE", help="file of raw references of the set"
    )
    parser.add_argument(
        "--output",
        required=True,
        metavar="FILE",
        help=f"picture to write: {', '.join(SUFFIXES)}; the table is written beside it, as .md "
        "and .tsv",
    )
    parser.add_argument(
        "--alpha",
        nargs="+",
        action=AddValues,
        type=float,
        default=ALPHAS,
        help="values of alpha to try (default: 0 0.1 0.2 ... 1)",
    )
    parser.add_argument(
        "--metric",
        choices=[*METRICS, Accuracy.name],
        default="bleu",
        help="metric that chooses alpha (default: bleu); accuracy is for labels",
    )
    parser.add_argument(
        "generate",
        nargs="+",
        metavar="-- ...",
        help="options for fairseq-generate (default: --task dual_translation --gen-subset valid)",
    )


def chosen(nbest: List[Candidate], alpha: float, length_norm: str) -> str:
    """Return the text of the best candidate; with alpha 1 that of the beam search."""
    from ..reranker import dual_score

    # exactly the search's own order, also where scores are equal or normalised otherwise
    if alpha == 1:
        return nbest[0].text
    return max(nbest, key=lambda entry: dual_score(entry.terms, alpha, length_norm)).text


class Point(NamedTuple):
    """alpha, its score, and the share of sentences whose translation it changes."""

    alpha: float
    score: float
    changed: float


def curve(
    lists: List[List[Candidate]],
    references: Sequence[str],
    alphas: Iterable[float],
    metric: Scorer,
    length_norm: str,
) -> List[Point]:
    """Return a point for each alpha, in increasing order."""
    plain, points = [chosen(nbest, 1, length_norm) for nbest in lists], []
    for alpha in sorted(set(alphas)):
        lines = [chosen(nbest, alpha, length_norm) for nbest in lists]
        # statistics of sentences add up, so that a set has one score and not a mean of scores
        score = metric.score(metric.statistics(lines, references).sum(axis=0))
        changed = sum(line != before for line, before in zip(lines, plain)) / len(lines)
        points.append(Point(alpha, score, changed))
    return points


def best(points: List[Point], metric: str) -> Point:
    """Return the point with the best score; of equal ones the nearest to plain beam search."""
    sign = -1 if metric == LOWER else 1
    # alpha 1 is plain beam search: among equals the greatest alpha changes least
    return max(points, key=lambda point: (sign * point.score, point.alpha))


def draw(points: List[Point], winner: Point, title: str) -> Figure:
    """Return a plot of the score over alpha, with the winner and plain beam search marked."""
    figure, (axes,) = new_figure(1, 1)
    alphas, scores = [point.alpha for point in points], [point.score for point in points]
    axes.plot(alphas, scores, marker="o", markersize=3.5)
    axes.plot(winner.alpha, winner.score, "o", markersize=9, fillstyle="none", color="C3")
    if points[-1].alpha == 1:
        axes.axhline(points[-1].score, color="0.5", linewidth=1, label="plain beam search")
    axes.set_xlabel("alpha")
    axes.set_ylabel(title)
    axes.grid(alpha=0.3)
    legends_below(figure, [axes])
    return figure


def choose_alpha(args: Namespace) -> int:
    """Print the table and what to give to fairseq-generate; write table and picture."""
    for alpha in args.alpha:
        if not 0 <= alpha <= 1:
            raise UsageError(f"--alpha {alpha}: allowed: 0 to 1")
    if Path(args.output).suffix not in SUFFIXES:
        raise UsageError(f"--output {args.output}: the name must end in {', '.join(SUFFIXES)}")
    if not Path(args.output).resolve().parent.is_dir():
        raise UsageError(f"--output {args.output}: there is no such folder")
    for suffix in (".md", ".tsv"):
        check_apart(Path(args.output).with_suffix(suffix), [args.ref])
    references, cfg = read_lines(args.ref), ranking_config(args.generate)
    if args.metric in (*BLEU_NAMES, "ter") and lacks_blanks(references):
        print(
            f"warning: {args.ref}: no blanks between words, which {METRICS[args.metric]} counts; "
            "--metric chrf counts characters",
            file=sys.stderr,
        )
    try:
        lists = nbest_lists(cfg)
    except FAULTY as error:
        raise UsageError(f"{type(error).__name__}: {error}") from error
    if len(lists) != len(references):
        raise UsageError(
            f"--ref {args.ref} has {len(references)} lines; --gen-subset {cfg.dataset.gen_subset} "
            f"has {len(lists)} translations"
        )
    metric: Scorer = Accuracy() if args.metric == Accuracy.name else Metric(args.metric)
    points = curve(lists, references, args.alpha, metric, str(cfg.task.dual_length_norm))
    winner = best(points, args.metric)
    body = [[f"{alpha:g}", f"{score:.2f}", f"{changed:.1%}"] for alpha, score, changed in points]
    text = markdown_table(["alpha", metric.title, "changed sentences"], body) + "\n"
    save(draw(points, winner, metric.title), args.output)
    header = f"alpha\t{args.metric}\tchanged"
    write_table([header, *("\t".join(map(str, point)) for point in points)], args.output)
    with atomic_path(Path(args.output).with_suffix(".md")) as partial:
        partial.write_text(text, encoding="utf-8")
    print(f"{text}\nSignature: {metric.signature()}\n\n--dual-alpha {winner.alpha:g}")
    return 0
