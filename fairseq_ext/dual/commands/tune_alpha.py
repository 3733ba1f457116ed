"""`fairseq-ext tune-alpha`: choose alpha of dual inference on the validation set (Eq. 7).

The n-best lists do not depend on alpha: they are made and scored once, by fairseq-generate's
options, and reranked for every alpha.
"""

from __future__ import annotations

import ast
import math
import pickle
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, List, NamedTuple, Sequence, Tuple

import numpy as np

from ...compat.generation.word_blanks import lacks_blanks
from ...compat.user_errors import option_of
from ...tools import UsageError, atomic_path, check_apart
from ...tools.curves.figures import SUFFIXES, new_figure, save, write_table
from ...tools.evaluate.inputs import read_lines
from ...tools.evaluate.report import markdown_table
from ...tools.evaluate.scores import METRICS, Metric, Scorer

if TYPE_CHECKING:
    from fairseq.dataclass.configs import FairseqConfig
    from fairseq.models import BaseFairseqModel
    from matplotlib.figure import Figure
    from torch import Tensor

    from ..task import DualTranslationTask

ALPHAS = [number / 10 for number in range(11)]
# the only metric of which less is better
LOWER = "ter"
# what fairseq raises for a wrong checkpoint, folder, --bpe or --model-overrides
FAULTY = (ValueError, OSError, RuntimeError, EOFError, SyntaxError, pickle.UnpicklingError)
# options of fairseq-generate that change what is printed or written, and that tune-alpha ignores
UNUSED = ("prefix_size", "constraints", "replace_unk", "lm_path", "results_path")


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


class Candidate(NamedTuple):
    """One translation of a sentence: its text and its ``Terms`` of Eq. 7."""

    text: str
    terms: Any


def parse(words: Sequence[str]) -> FairseqConfig:
    """Return the configuration of fairseq-generate for these words."""
    from fairseq import options
    from fairseq.dataclass.utils import convert_namespace_to_omegaconf

    # of options given twice argparse takes the last: the user's words win
    default = ["--task", "dual_translation", "--gen-subset", "valid"]
    args = options.parse_args_and_arch(options.get_generation_parser(), [*default, *words])
    return convert_namespace_to_omegaconf(args)


def configuration(words: Sequence[str]) -> FairseqConfig:
    """Return the configuration with which fairseq-generate ranks by Eq. 7.

    Raises UsageError for words with which alpha cannot be chosen.
    """
    cfg = parse(words)
    if cfg.task._name != "dual_translation":
        raise UsageError(f"--task {cfg.task._name}: allowed: dual_translation")
    if cfg.common_eval.path is None:
        raise UsageError("--path CHECKPOINT is missing after --")
    options = {**cfg.generation, "results_path": cfg.common_eval.results_path}
    for name in UNUSED:
        value = options[name]
        if value:
            option = option_of(name)
            raise UsageError(f"{option} {value}: tune-alpha does not look at it; leave it out")
    if cfg.dataset.num_shards > 1:
        raise UsageError(
            f"--num-shards {cfg.dataset.num_shards}: alpha is chosen on the whole set; leave it out"
        )
    if cfg.task.dual_alpha != 1:
        raise UsageError(
            f"--dual-alpha {cfg.task.dual_alpha}: tune-alpha finds it; leave it out, or name the "
            "values with --alpha before --"
        )
    # with any value below 1 the reverse models score the lists
    return parse([*words, "--dual-alpha", "0.5"])


def prepare(
    cfg: FairseqConfig,
) -> Tuple[DualTranslationTask, List[BaseFairseqModel], Iterable[Dict[str, Any]]]:
    """Return task, models and the batches in order, as fairseq-generate makes them."""
    import torch
    from fairseq import checkpoint_utils, tasks, utils

    if cfg.common.seed is not None and not cfg.generation.no_seed_provided:
        utils.set_torch_seed(cfg.common.seed)  # of --sampling
    task = tasks.setup_task(cfg.task)
    overrides = ast.literal_eval(cfg.common_eval.model_overrides)
    paths = utils.split_paths(cfg.common_eval.path)
    # as in fairseq_cli.generate: architecture and dictionaries come from the checkpoint
    shards = cfg.checkpoint.checkpoint_shard_count
    models, saved = checkpoint_utils.load_model_ensemble(
        paths,
        overrides,
        task,
        strict=shards == 1,
        suffix=cfg.checkpoint.checkpoint_suffix,
        num_shards=shards,
    )
    task.load_dataset(cfg.dataset.gen_subset, task_cfg=saved.task)
    for model in models:
        if cfg.common.fp16:
            model.half()
        if torch.cuda.is_available() and not cfg.common.cpu:
            model.cuda()
        model.prepare_for_inference_(cfg)
    max_tokens = cfg.dataset.max_tokens
    if max_tokens is None and cfg.dataset.batch_size is None:
        max_tokens = 12000  # the default of fairseq-generate
    # the batches of fairseq-generate, so that padding and thus rounding are the same
    limits = [task.max_positions(), *(model.max_positions() for model in models)]
    batches = task.get_batch_iterator(
        dataset=task.dataset(cfg.dataset.gen_subset),
        max_tokens=max_tokens,
        max_sentences=cfg.dataset.batch_size,
        max_positions=utils.resolve_max_positions(*limits),
        ignore_invalid_inputs=cfg.dataset.skip_invalid_size_inputs_valid_test,
        required_batch_size_multiple=cfg.dataset.required_batch_size_multiple,
        num_workers=cfg.dataset.num_workers,
    )
    return task, models, batches.next_epoch_itr(shuffle=False)


def plain_text(
    cfg: FairseqConfig, task: DualTranslationTask, generator: Any
) -> Callable[[Tensor], str]:
    """Return a function tokens -> text, which fairseq-generate prints on its D- lines."""
    from fairseq import utils

    bpe, tokenizer = task.build_bpe(cfg.bpe), task.build_tokenizer(cfg.tokenizer)

    def text(tokens: Tensor) -> str:
        _, line, _ = utils.post_process_prediction(
            hypo_tokens=tokens.int().cpu(),
            src_str="",
            alignment=None,
            align_dict=None,
            tgt_dict=task.target_dictionary,
            remove_bpe=cfg.common_eval.post_process,
            extra_symbols_to_ignore=generator.symbols_to_strip_from_output,
        )
        for step in (bpe, tokenizer):
            line = step.decode(line) if step else line
        return line

    return text


def candidates(cfg: FairseqConfig) -> List[List[Candidate]]:
    """Return the n-best list of every sentence in the order of the beam search."""
    from fairseq import utils

    task, models, batches = prepare(cfg)
    generator = task.build_generator(models, cfg.generation)
    text = plain_text(cfg, task, generator)
    nbest_by_number: Dict[int, List[Candidate]] = {}
    for sample in batches:
        device = next(models[0].parameters()).device
        sample = utils.move_to_cuda(sample) if device.type == "cuda" else sample
        lists = task.inference_step(generator, models, sample)
        for number, nbest in zip(sample["id"].tolist(), lists):
            # the lists come sorted by the alpha of ``configuration``; ranks are those of the search
            by_rank = sorted(nbest, key=lambda hypothesis: hypothesis["rank"])
            nbest_by_number[number] = [
                Candidate(text(hypothesis["tokens"]), hypothesis["terms"])
                for hypothesis in allowed(by_rank)
            ]
    # batches are in the order of sentence lengths, references in that of the file
    return [nbest_by_number[number] for number in sorted(nbest_by_number)]


def allowed(nbest: List[Dict[str, Any]]) -> List[Dict[str, Any]]:
    """Return the hypotheses that --match-source-len has not ruled out; the first if it has all."""
    return [entry for entry in nbest if float(entry["score"]) > -math.inf] or nbest[:1]


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
        axes.legend(fontsize="small")
    axes.set_xlabel("alpha")
    axes.set_ylabel(title)
    axes.grid(alpha=0.3)
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
    references, cfg = read_lines(args.ref), configuration(args.generate)
    if args.metric.startswith("bleu") and lacks_blanks(references):
        print(
            f"warning: {args.ref}: no blanks between words, which BLEU counts; --metric chrf "
            "counts characters",
            file=sys.stderr,
        )
    try:
        lists = candidates(cfg)
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
