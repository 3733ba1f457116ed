"""fairseq-score --sacrebleu and --sentence-bleu, fairseq-generate --sacrebleu."""

from __future__ import annotations

import argparse
import functools
import sys
from typing import TYPE_CHECKING, TextIO

from ..generation.word_blanks import any_of, lacks_blanks, tokenisers_for
from ..patch_registry import PatchedModule, patch
from ..surrounded_calls import call_before
from ..text_lines import BYTE_ORDER_MARK
from ..user_errors import OptionError

if TYPE_CHECKING:
    from fairseq.dataclass.configs import FairseqConfig


def _read_lines(path: str, ignore_case: bool) -> list[str]:
    """Return the lines of a text file, or of the standard input for "-"."""
    try:
        if path == "-":
            text = sys.stdin.read()
        else:
            with open(path, encoding="utf-8") as file:
                text = file.read()
    except UnicodeDecodeError as error:
        place = "the standard input" if path == "-" else path
        number = error.object.count(b"\n", 0, error.start) + 1
        raise ValueError(f"{place}, line {number}: not UTF-8 ({error.reason})") from error
    text = text.removeprefix(BYTE_ORDER_MARK)
    # not splitlines: that also breaks lines at form feeds and other separators inside a sentence
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return [line.lower() for line in lines] if ignore_case else lines


def _read_both(args: argparse.Namespace) -> tuple[list[str], list[str]]:
    """Return the lines of --sys and --ref; ValueError unless they are as many and not none."""
    system = _read_lines(args.sys, args.ignore_case)
    reference = _read_lines(args.ref, args.ignore_case)
    if len(system) != len(reference):
        raise ValueError(
            f"--sys {args.sys} has {len(system)} lines and --ref {args.ref} has "
            f"{len(reference)}: they must be as many"
        )
    if not system:
        raise ValueError(f"--sys {args.sys} and --ref {args.ref} are empty; allowed: lines")
    return system, reference


def _check_order(args: argparse.Namespace) -> None:
    """Raise OptionError for an order of n-grams that the scorer does not count."""
    # fairseq's own scorer counts n-grams up to 4
    highest = None if args.sacrebleu else 4
    if args.order < 1 or (highest and args.order > highest):
        allowed = f"1 to {highest}" if highest else "at least 1"
        raise OptionError(f"--order {args.order} is not allowed; allowed: {allowed}")


def _print_sacrebleu(args: argparse.Namespace) -> None:
    """Print sacrebleu's BLEU of --sys and its signature."""
    from sacrebleu.metrics import BLEU

    system, reference = _read_both(args)
    if lacks_blanks(reference):
        print(
            f"warning: --ref {args.ref}: no blanks between words, which BLEU counts; "
            f"`fairseq-ext evaluate --tokenize` with {any_of(tokenisers_for(reference))} cuts the "
            "texts",
            file=sys.stderr,
        )
    metric = BLEU(lowercase=args.ignore_case, max_ngram_order=args.order)
    print(metric.corpus_score(system, [reference]).format())
    print(metric.get_signature())


def _print_fairseq_bleu(args: argparse.Namespace) -> None:
    """Print fairseq's BLEU of --sys, or its smoothed BLEU of each line, numbered from 0."""
    from fairseq.data.dictionary import Dictionary
    from fairseq.scoring import bleu

    dictionary = Dictionary()  # grows by the words of both files
    config = bleu.BleuConfig(pad=dictionary.pad(), eos=dictionary.eos(), unk=dictionary.unk())
    scorer = bleu.Scorer(config)
    for number, (system, reference) in enumerate(zip(*_read_both(args))):
        if args.sentence_bleu:
            scorer.reset(one_init=True)  # higher n-grams begin at 1: else most lines score 0
        scorer.add(dictionary.encode_line(reference), dictionary.encode_line(system))
        if args.sentence_bleu:
            print(number, scorer.result_string(args.order))
    if not args.sentence_bleu:
        print(scorer.result_string(args.order))


@patch(
    "fairseq_cli.score",
    because="sacrebleu 2.0 wants lists where --sacrebleu passes a file; fairseq 0.12: "
    "--sentence-bleu passes three numbers where the scorer wants its configuration, lines that "
    "one file alone has are left out, and a byte order mark is a part of the first word",
)
def score_with_sacrebleu_and_by_sentence(module: PatchedModule) -> None:
    """Read both files by one rule, and score as many lines of each."""

    @functools.wraps(module.cli_main)
    def cli_main() -> None:
        args = module.get_parser().parse_args()
        _check_order(args)
        if args.sacrebleu:
            _print_sacrebleu(args)
            return
        if not args.sentence_bleu:
            print(args)  # as stock does
        _print_fairseq_bleu(args)

    module.cli_main = cli_main


@patch(
    "fairseq_cli.generate",
    because="fairseq 0.12.2: with --sacrebleu, fairseq-generate prints the BLEU of fairseq's own "
    "tokens all the same, and leaves out the warning about it",
)
def sacrebleu_scores_what_is_generated(module: PatchedModule) -> None:
    """Let --sacrebleu mean --scoring sacrebleu."""

    def choose_scorer(cfg: FairseqConfig, output_file: TextIO) -> None:
        scorer = getattr(cfg.scoring, "_name", cfg.scoring)
        if cfg.generation.sacrebleu and scorer != "sacrebleu":
            if scorer != "bleu":
                raise OptionError(f"--sacrebleu contradicts --scoring {scorer}; leave one out")
            from fairseq.scoring.bleu import SacrebleuConfig
            from omegaconf import OmegaConf

            cfg.scoring = OmegaConf.structured(SacrebleuConfig(_name="sacrebleu"))

    call_before(module, "_main", choose_scorer)
