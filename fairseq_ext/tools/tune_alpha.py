"""`fairseq-ext tune-alpha`: choose alpha of dual inference on the validation set.

The n-best lists do not depend on alpha: they are made and scored once, by fairseq-generate's
options, and ranked for every alpha.
"""

import ast
import pickle
from pathlib import Path
from typing import Any, List, NamedTuple

import numpy as np

from . import UsageError, atomic_path
from .evaluate_input import read_lines
from .evaluate_report import rows
from .evaluate_scores import METRICS, Metric
from .plot import SUFFIXES, new_figure, save, write_table

ALPHAS = [number / 10 for number in range(11)]
# the only metric of which less is better
LOWER = "ter"
# what a wrong checkpoint, folder, --bpe or --model-overrides ends in
FAULTY = (ValueError, OSError, RuntimeError, EOFError, SyntaxError, pickle.UnpicklingError)
# options of fairseq-generate that change what is printed and are not looked at here
UNUSED = ("prefix_size", "constraints", "replace_unk")


class Accuracy:
    """Lines that are the reference, in percent; used as ``evaluate_scores.Metric`` is."""

    name, title = "accuracy", "accuracy"

    def statistics(self, lines, references):
        """(N, 2): whether each line is right, and 1."""
        return np.array([[line == wanted, 1] for line, wanted in zip(lines, references)], int)

    def score(self, total) -> float:
        right, lines = total
        return 100 * right / lines

    def signature(self) -> str:
        return "lines equal to the reference, percent"


def add_arguments(parser):
    parser.add_argument("--ref", required=True, metavar="FILE", help="raw references of the set")
    parser.add_argument(
        "--output",
        required=True,
        metavar="FILE",
        help=f"the picture: {', '.join(SUFFIXES)}; the table is beside it, as .md and .tsv",
    )
    parser.add_argument(
        "--alpha", nargs="+", type=float, default=ALPHAS, help="default: 0 0.1 0.2 ... 1"
    )
    parser.add_argument(
        "--metric",
        choices=[*METRICS, Accuracy.name],
        default="bleu",
        help="what chooses (default: bleu); accuracy: of labels",
    )
    parser.add_argument(
        "generate",
        nargs="+",
        metavar="-- ...",
        help="what fairseq-generate is given; default: --task dual_translation --gen-subset valid",
    )


class Candidate(NamedTuple):
    """One translation of a sentence: its text and what Eq. 7 needs of it."""

    text: str
    terms: Any


def configuration(words: List[str]):
    """The configuration of fairseq-generate for these words."""
    from fairseq import options
    from fairseq.dataclass.utils import convert_namespace_to_omegaconf

    default = ["--task", "dual_translation", "--gen-subset", "valid"]
    args = options.parse_args_and_arch(options.get_generation_parser(), [*default, *words])
    cfg = convert_namespace_to_omegaconf(args)
    if cfg.task._name != "dual_translation":
        raise UsageError(f"--task {cfg.task._name}: allowed: dual_translation")
    if cfg.common_eval.path is None:
        raise UsageError("--path CHECKPOINT is missing after --")
    for name in UNUSED:
        value = getattr(cfg.generation, name)
        if value:
            option = f"--{name.replace('_', '-')}"
            raise UsageError(f"{option} {value}: tune-alpha does not look at it; leave it out")
    # any value below 1 has the lists scored
    cfg.task.dual_alpha = 0.5
    return cfg


def prepare(cfg):
    """(task, models, iterator over the batches), as fairseq-generate makes them."""
    import torch
    from fairseq import checkpoint_utils, tasks, utils

    task = tasks.setup_task(cfg.task)
    overrides = ast.literal_eval(cfg.common_eval.model_overrides)
    paths = utils.split_paths(cfg.common_eval.path)
    models, saved = checkpoint_utils.load_model_ensemble(paths, overrides, task)
    task.load_dataset(cfg.dataset.gen_subset, task_cfg=saved.task)
    for model in models:
        if cfg.common.fp16:
            model.half()
        if torch.cuda.is_available() and not cfg.common.cpu:
            model.cuda()
        model.prepare_for_inference_(cfg)
    if cfg.dataset.max_tokens is None and cfg.dataset.batch_size is None:
        cfg.dataset.max_tokens = 12000
    limits = [task.max_positions(), *(model.max_positions() for model in models)]
    batches = task.get_batch_iterator(
        dataset=task.dataset(cfg.dataset.gen_subset),
        max_tokens=cfg.dataset.max_tokens,
        max_sentences=cfg.dataset.batch_size,
        max_positions=utils.resolve_max_positions(*limits),
        ignore_invalid_inputs=cfg.dataset.skip_invalid_size_inputs_valid_test,
        num_workers=cfg.dataset.num_workers,
    )
    return task, models, batches.next_epoch_itr(shuffle=False)


def plain_text(cfg, task, generator):
    """Function tokens -> text, what fairseq-generate prints as D."""
    from fairseq import utils

    bpe, tokenizer = task.build_bpe(cfg.bpe), task.build_tokenizer(cfg.tokenizer)

    def text(tokens):
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


def candidates(cfg) -> List[List[Candidate]]:
    """Of every sentence of the set what the beam search found, its best first."""
    from fairseq import utils

    task, models, batches = prepare(cfg)
    generator = task.build_generator(models, cfg.generation)
    text, found = plain_text(cfg, task, generator), {}
    for sample in batches:
        device = next(models[0].parameters()).device
        sample = utils.move_to_cuda(sample) if device.type == "cuda" else sample
        lists = task.inference_step(generator, models, sample)
        for number, nbest in zip(sample["id"].tolist(), lists):
            by_rank = sorted(nbest, key=lambda hypothesis: hypothesis["rank"])
            found[number] = [Candidate(text(it["tokens"]), it["terms"]) for it in by_rank]
    return [found[number] for number in sorted(found)]


def chosen(nbest: List[Candidate], alpha: float, length_norm: str) -> str:
    """The text of the best candidate; that of the beam search where alpha is 1."""
    from ..dual.inference import dual_score

    if alpha == 1:
        return nbest[0].text
    return max(nbest, key=lambda one: dual_score(one.terms, alpha, length_norm)).text


class Point(NamedTuple):
    """alpha, its score, and the share of sentences whose translation it changes."""

    alpha: float
    score: float
    changed: float


def curve(lists, references, alphas, metric, length_norm) -> List[Point]:
    """A point for each alpha, in increasing order."""
    plain, found = [chosen(nbest, 1, length_norm) for nbest in lists], []
    for alpha in sorted(set(alphas)):
        lines = [chosen(nbest, alpha, length_norm) for nbest in lists]
        score = metric.score(metric.statistics(lines, references).sum(axis=0))
        changed = sum(line != before for line, before in zip(lines, plain)) / len(lines)
        found.append(Point(alpha, score, changed))
    return found


def best(points: List[Point], metric: str) -> Point:
    """The point with the best score; of equal ones the nearest to plain beam search."""
    sign = -1 if metric == LOWER else 1
    return max(points, key=lambda point: (sign * point.score, point.alpha))


def draw(points: List[Point], winner: Point, title: str):
    """The score over alpha, with the winner and plain beam search marked."""
    figure, (axes,) = new_figure(1, 1)
    axes.plot([it.alpha for it in points], [it.score for it in points], marker="o", markersize=3.5)
    axes.plot(winner.alpha, winner.score, "o", markersize=9, fillstyle="none", color="C3")
    if points[-1].alpha == 1:
        axes.axhline(points[-1].score, color="0.5", linewidth=1, label="plain beam search")
        axes.legend(fontsize="small")
    axes.set_xlabel("alpha")
    axes.set_ylabel(title)
    axes.grid(alpha=0.3)
    return figure


def run(args):
    """Print the table and what to give to fairseq-generate; write table and picture."""
    for alpha in args.alpha:
        if not 0 <= alpha <= 1:
            raise UsageError(f"--alpha {alpha}: allowed: 0 to 1")
    if Path(args.output).suffix not in SUFFIXES:
        raise UsageError(f"--output {args.output}: the name must end in {', '.join(SUFFIXES)}")
    if not Path(args.output).resolve().parent.is_dir():
        raise UsageError(f"--output {args.output}: there is no such folder")
    references, cfg = read_lines(args.ref), configuration(args.generate)
    try:
        lists = candidates(cfg)
    except FAULTY as error:
        raise UsageError(f"{type(error).__name__}: {error}") from error
    if len(lists) != len(references):
        raise UsageError(
            f"--ref {args.ref} has {len(references)} lines; --gen-subset {cfg.dataset.gen_subset} "
            f"has {len(lists)} translations"
        )
    metric = Accuracy() if args.metric == Accuracy.name else Metric(args.metric)
    points = curve(lists, references, args.alpha, metric, str(cfg.task.dual_length_norm))
    winner = best(points, args.metric)
    body = [[f"{it.alpha:g}", f"{it.score:.2f}", f"{it.changed:.1%}"] for it in points]
    text = rows(["alpha", metric.title, "changed sentences"], body) + "\n"
    save(draw(points, winner, metric.title), args.output)
    header = f"alpha\t{args.metric}\tchanged"
    write_table([header, *("\t".join(map(str, it)) for it in points)], args.output)
    with atomic_path(Path(args.output).with_suffix(".md")) as partial:
        partial.write_text(text, encoding="utf-8")
    print(f"{text}\nSignature: {metric.signature()}\n\n--dual-alpha {winner.alpha:g}")
    return 0
