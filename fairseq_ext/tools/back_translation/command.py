"""`fairseq-ext back-translate`: synthetic pairs, made of monolingual text by a trained model.

Each line y of the target language becomes a pair (x', y), whose source x' the model translates from
it (Sennrich et al. 2016). With --pivot x' is translated from a line of a third language that means
the same, for a direction without data (Firat et al. 2016). Texts are cut into sub-words already, as
those that fairseq-preprocess binarises.
"""

from __future__ import annotations

import math
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, List, Tuple

from ...compat.text_lines import UnreadableText, lines_of
from ...compat.user_errors import reason_of
from .. import UsageError, model_paths, write_texts
from .pairs import SyntheticPair, reason_to_drop, words
from .progress import Progress, digest

if TYPE_CHECKING:
    from ...inference.model import Model

BEAM = 5
SEED = 1
LARGEST_SEED = 2**32 - 1  # as in fairseq's commands
BLOCK = 256  # lines between two entries of the file of progress


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of `fairseq-ext back-translate`."""
    parser.add_argument("checkpoint", metavar="CHECKPOINT",
                        help="checkpoint that translates; FILE:FILE is an ensemble")  # fmt: skip
    parser.add_argument("data", metavar="DATA", help="data folder of the training")
    parser.add_argument("-s", "--source-lang", required=True, metavar="LANG",
                        help="language of the synthetic sources")  # fmt: skip
    parser.add_argument("-t", "--target-lang", required=True, metavar="LANG",
                        help="language of the lines, which become targets")  # fmt: skip
    parser.add_argument("--monolingual", required=True, metavar="FILE",
                        help="the lines, cut into sub-words")  # fmt: skip
    parser.add_argument("--pivot", metavar="LANG=FILE",
                        help="translate these lines of a third language in place of those of "
                        "--monolingual; line N means the same")  # fmt: skip
    parser.add_argument("--output", required=True, metavar="PREFIX",
                        help="writes PREFIX.SOURCE, PREFIX.TARGET and PREFIX.tsv")  # fmt: skip
    parser.add_argument("--beam", type=int, help=f"beam of the search (default: {BEAM})")
    parser.add_argument("--sampling", action="store_true",
                        help="draw the words by their probabilities")  # fmt: skip
    parser.add_argument("--seed", type=int, help=f"seed of --sampling (default: {SEED})")
    parser.add_argument("--batch", type=int, default=64, metavar="N",
                        help="lines that are translated together (default: 64)")  # fmt: skip
    parser.add_argument("--max-ratio", type=float, default=0.0, metavar="R",
                        help="leave out pairs of which one side has more than R times the words "
                        "of the other; 0 = off")  # fmt: skip
    parser.add_argument("--round-trip", action="store_true",
                        help="score the line, translated back from the source")  # fmt: skip
    parser.add_argument("--min-round-trip", type=float, metavar="SCORE",
                        help="leave out pairs of which --round-trip is less: the mean log2 P of a "
                        "token of the translated line, e.g. -2")  # fmt: skip
    parser.add_argument("--device", default="cpu", help="cpu, cuda or cuda:N (default: cpu)")
    parser.add_argument("--force", action="store_true",
                        help="replace the output, or progress that other options made")  # fmt: skip


def check(args: Namespace) -> None:
    """Raise UsageError, naming the option, for values that are not allowed."""
    if args.sampling and args.beam is not None:
        raise UsageError(f"--beam {args.beam}: --sampling draws one translation and has no beam")
    if args.seed is not None and not args.sampling:
        raise UsageError(f"--seed {args.seed}: without --sampling nothing is drawn; leave it out")
    if args.seed is not None and not 0 <= args.seed <= LARGEST_SEED:
        raise UsageError(f"--seed {args.seed}: must be at least 0 and at most {LARGEST_SEED}")
    for name in ("beam", "batch"):
        value = getattr(args, name)
        if value is not None and value < 1:
            raise UsageError(f"--{name} {value}: must be at least 1")
    # NaN is no ratio either
    if args.max_ratio and not args.max_ratio >= 1:
        raise UsageError(f"--max-ratio {args.max_ratio}: must be at least 1; 0 = off")
    if args.min_round_trip is not None and not args.round_trip:
        raise UsageError(f"--min-round-trip {args.min_round_trip}: needs --round-trip")
    if args.min_round_trip is not None and math.isnan(args.min_round_trip):
        raise UsageError("--min-round-trip nan: must be a number")
    if args.source_lang == args.target_lang:
        raise UsageError(f"-s {args.source_lang} -t {args.target_lang}: two different languages")


def read_lines(option: str, path: str) -> List[str]:
    """Return the lines of a file; UsageError, naming option and file, where it has none.

    UsageError also for a carriage return within a line, where fairseq would begin another one.
    """
    try:
        lines = list(lines_of(path))
    except UnreadableText as error:
        raise UsageError(f"{option}: {error}") from error
    torn = next((number for number, line in enumerate(lines, 1) if "\r" in line), None)
    if torn:
        raise UsageError(f"{option} {path}, line {torn}: a carriage return within the line")
    if not lines:
        raise UsageError(f"{option} {path}: holds no line")
    return lines


def translated_lines(args: Namespace, targets: List[str]) -> Tuple[str, List[str]]:
    """Return the language and the lines that are translated."""
    if args.pivot is None:
        return args.target_lang, targets
    lang, _, path = args.pivot.partition("=")
    if not lang or not path or lang in (args.source_lang, args.target_lang):
        raise UsageError(
            f"--pivot {args.pivot!r}: must be LANG=FILE with another language than "
            f"{args.source_lang} and {args.target_lang}"
        )
    lines = read_lines("--pivot", path)
    if len(lines) != len(targets):
        raise UsageError(
            f"--pivot {args.pivot}: has {len(lines)} lines, --monolingual {args.monolingual} has "
            f"{len(targets)}; line N of both must mean the same"
        )
    return lang, lines


def output_paths(args: Namespace) -> List[Path]:
    """Return the files that are written; UsageError where one of them is read."""
    paths = [Path(f"{args.output}.{end}") for end in (args.source_lang, args.target_lang, "tsv")]
    read = {"--monolingual": args.monolingual, "--pivot": (args.pivot or "").partition("=")[2]}
    for path in paths:
        for option, name in read.items():
            if name and path.resolve() == Path(name).resolve():
                raise UsageError(
                    f"--output {args.output}: {path} is the file of {option}; allowed: a prefix "
                    "of other files"
                )
    return paths


def check_present(paths: List[Path], progress: Progress, lines: int, args: Namespace) -> None:
    """Raise UsageError for files that the command has not written, unless they may be replaced."""
    present = [path for path in paths if path.exists()]
    # one that was interrupted while it wrote had made all pairs before
    if present and len(progress.pairs) < lines and not args.force:
        if not progress.pairs:
            progress.remove()
        raise UsageError(
            f"--output {args.output}: {present[0]} exists; allowed: --force replaces it"
        )


def load(args: Namespace, lang: str) -> Model:
    """Return the model that translates the lines; UsageError where it cannot."""
    # imported here: --help does without torch
    from ...inference.loading import load as load_model

    paths = model_paths("CHECKPOINT", args.checkpoint)
    model_name = paths if len(paths) > 1 else paths[0]
    directions = [f"{lang}-{args.source_lang}"]
    directions += [f"{args.source_lang}-{lang}"] if args.round_trip else []
    try:
        model = load_model(
            model_name, args.data, directions[0], subwords="none", device=args.device
        )
        for direction in directions:
            model.toward(direction)
    except (ValueError, OSError, RuntimeError) as error:
        reason = reason_of(error, args.checkpoint)
        raise UsageError(f"CHECKPOINT {args.checkpoint}: {reason}") from error
    return model


def warn_of_unknown_words(args: Namespace, model: Model, lines: List[str]) -> None:
    """Warn where the model knows less than half of the words that it is to translate."""
    from ...inference.inputs import encode_words

    dictionary = model.task.source_dictionary
    count = unknown = 0
    for line in lines:
        tokens = encode_words(dictionary, line)
        count += len(tokens) - 1  # without the end symbol
        unknown += int(tokens.eq(dictionary.unk()).sum())
    if 2 * unknown > count:
        lang, _, path = (args.pivot or f"{args.target_lang}={args.monolingual}").partition("=")
        print(
            f"fairseq-ext back-translate: warning: {path}: {unknown:,} of {count:,} words are not "
            f"in dict.{lang}.txt; lines must be cut into sub-words as the training text is",
            file=sys.stderr,
        )


def make(args: Namespace, model: Model, lines: List[str], block: int) -> List[SyntheticPair]:
    """Return the sources of the lines of a block, with their scores; empty lines have none."""
    import torch

    texts = [line for line in lines if line.strip()]
    search = {"sampling": True, "beam": 1} if args.sampling else {"beam": args.beam or BEAM}
    # fairseq draws words from the global state: a resumed command draws the same
    torch.manual_seed(seed_of(args) * 1_000_003 + block)
    # without their attention, which takes time and is not asked for here
    translated = model.translate(texts, batch=args.batch, attention=False, extras=False, **search)
    best = [(result.text, result.hypotheses[0].score) for result in translated]
    back: List[float] = []
    if args.round_trip:
        assert model.pair is not None  # it translates
        reverse = model.toward(str(model.pair.reverse))
        back = [score.score for score in reverse.score([text for text, _ in best], texts)]
    results = iter(
        SyntheticPair(text, score, back[number] if args.round_trip else None)
        for number, (text, score) in enumerate(best)
    )
    return [next(results) if line.strip() else SyntheticPair("", None, None) for line in lines]


def write(args: Namespace, targets: List[str], pairs: List[SyntheticPair]) -> int:
    """Write the pairs that are kept and the table of all; return how many are kept."""
    sources: List[str] = []
    lines: List[str] = []
    table = ["line\tleft_out\tsource_words\ttarget_words\tscore\tround_trip\n"]
    for number, (pair, target) in enumerate(zip(pairs, targets), 1):
        reason = reason_to_drop(pair, target, args.max_ratio, args.min_round_trip)
        scores = ["" if s is None else f"{s:.4f}" for s in (pair.score, pair.round_trip)]
        cells = [reason, words(pair.source), words(target), *scores]
        table.append("\t".join(map(str, [number, *cells])) + "\n")
        if not reason:
            sources.append(f"{pair.source}\n")
            lines.append(f"{target}\n")
    write_texts(dict(zip(output_paths(args), (sources, lines, table))))
    return len(lines)


def seed_of(args: Namespace) -> int:
    """Return the seed of --sampling."""
    return SEED if args.seed is None else int(args.seed)


def search_of(args: Namespace) -> str:
    """Return what the translations depend on besides the model."""
    if args.sampling:  # what a line draws depends on the lines before it in its batch
        return f"sampling, seed {seed_of(args)}, batch {args.batch}"
    return f"beam {args.beam or BEAM}"


def back_translate(args: Namespace) -> int:
    """Translate what is still to be done, then write all pairs at once."""
    check(args)
    targets = read_lines("--monolingual", args.monolingual)
    lang, lines = translated_lines(args, targets)
    paths = output_paths(args)
    model = load(args, lang)
    # what the translations depend on; filters may change until the end
    options = {
        "checkpoint": ":".join(map(digest, map(Path, model_paths("CHECKPOINT", args.checkpoint)))),
        "lines": digest(lines),
        "direction": f"{lang}-{args.source_lang}",
        "search": search_of(args),
        "round_trip": args.round_trip,
    }
    progress = Progress(Path(f"{args.output}.partial"), options, args.force)
    check_present(paths, progress, len(lines), args)
    warn_of_unknown_words(args, model, lines)
    for start in range(len(progress.pairs), len(lines), BLOCK):
        progress.add(make(args, model, lines[start : start + BLOCK], start // BLOCK))
        print(f"{len(progress.pairs)} of {len(lines)} lines", flush=True)
    count = write(args, targets, progress.pairs)
    progress.remove()
    print(f"{count} of {len(lines)} pairs in {args.output}.{args.source_lang} and "
          f"{args.output}.{args.target_lang}; scores in {paths[2]}")  # fmt: skip
    return 0
