"""`fairseq-ext translate`: a file of plain text becomes a file of translations, line by line.

The lines are cut into sub-words and joined again by the model's own sub-word models, as in
`fairseq_ext.load`. Line N of the output is the translation of line N; an empty line stays one.
"""

from __future__ import annotations

import ast
import contextlib
import itertools
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Iterable, Iterator, Sequence

from ...compat.text_lines import decoded, lines_of
from .. import (
    AddValues,
    UsageError,
    atomic_path,
    check_apart,
    check_new,
    model_paths,
    open_text,
)
from ..packing.command import subwords_of

if TYPE_CHECKING:
    from ...inference.model import Model

BLOCK = 1024  # lines that are read, sorted by length and translated before the next
STANDARD = "-"  # the standard input, or the standard output
# arguments of Model.translate that are not for --search, and why
NAMED = {
    "beam": "allowed: --beam",
    "batch": "allowed: --batch",
    "nbest": "one translation is written for each line; allowed: leave it out",
    **{
        name: "no option of the search; allowed: leave it out"
        for name in ("sentences", "progress", "attention", "extras")
    },
}


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of `fairseq-ext translate`."""
    add = parser.add_argument
    add(
        "model",
        metavar="MODEL",
        help="folder written by fairseq-ext pack, or a checkpoint; FILE:FILE is an ensemble",
    )
    add("--data", metavar="DATA", help="data folder of the training of a checkpoint")
    add(
        "--direction",
        metavar="PAIR",
        help="such as de-en, or de+fr-en for two sources (default: the first of the model)",
    )
    add(
        "--input",
        nargs="+",
        action=AddValues,
        default=[STANDARD],
        metavar="FILE",
        help="plain text (UTF-8, maybe packed as .gz), a sentence in each line; as many files as "
        "the direction has sources (default: -, the standard input)",
    )
    add("--output", default=STANDARD, metavar="FILE",
        help="file to write; .gz packs it (default: -, the standard output)")  # fmt: skip
    add("--force", action="store_true", help="replace --output if it exists")
    add("--beam", type=int, default=5, metavar="N", help="beam of the search (default: 5)")
    add(
        "--search",
        nargs="+",
        action=AddValues,
        default=[],
        metavar="NAME=VALUE",
        help="more options of fairseq-generate, with underscores, such as lenpen=0.6",
    )
    add("--batch", type=int, default=64, metavar="N",
        help="sentences that are translated together (default: 64)")  # fmt: skip
    add(
        "--subwords",
        metavar="FILE",
        help="sub-word model of a checkpoint, or LANGUAGE=FILE,LANGUAGE=FILE, or none (default: "
        "looked for beside the dictionaries and the checkpoint)",
    )
    add("--device", default="cpu", help="cpu, cuda or cuda:N (default: cpu)")
    add("--dtype", default="float32",
        help="of the parameters: float32, bfloat16 or float16 (default: float32)")  # fmt: skip


def search_options(entries: Sequence[str]) -> dict[str, Any]:
    """Return {name: value} of NAME=VALUE; UsageError."""
    options: dict[str, Any] = {}
    for entry in entries:
        name, separator, text = entry.partition("=")
        if not separator or name in options:
            raise UsageError(f"--search {entry!r}; allowed: NAME=VALUE, each name once")
        if name in NAMED:
            raise UsageError(f"--search {entry}: {NAMED[name]}")
        try:
            options[name] = ast.literal_eval(text)
        except (ValueError, SyntaxError):
            options[name] = text
    return options


def load_model(args: Namespace) -> Model:
    """Return the model in its direction; UsageError."""
    # imported here: --help does without torch
    from ...inference.loading import load
    from ...inference.subword_models import SubwordsMissing

    paths = model_paths("MODEL", args.model)
    try:
        return load(
            paths if len(paths) > 1 else paths[0],
            args.data,
            args.direction,
            device=args.device,
            dtype=args.dtype,
            subwords=subwords_of(args.subwords),
        )
    except SubwordsMissing as error:
        raise UsageError(
            f"{error.reason}; allowed: --subwords with its file, a file for each language, or none "
            "for texts that are cut already"
        ) from error
    except (ValueError, ImportError, FileNotFoundError) as error:
        raise UsageError(str(error)) from error


def shown_name(name: str) -> str:
    """Return the name of an input, for messages."""
    return "the standard input" if name == STANDARD else name


def read_lines(name: str) -> Iterator[str]:
    """Return the lines of a file, or of the standard input."""
    if name == STANDARD:
        return decoded(sys.stdin.buffer, shown_name(name))
    return lines_of(name)


def check_inputs(names: Sequence[str]) -> None:
    """Raise UsageError for an input that is no file, before the model is loaded."""
    for name in names:
        # a pipe is read as well
        if name != STANDARD and (not Path(name).exists() or Path(name).is_dir()):
            raise UsageError(f"--input {name}: there is no such file")
    if names.count(STANDARD) > 1:
        raise UsageError("--input: the standard input twice; allowed: once")


def sentences_of(names: Sequence[str], model: Model) -> Iterator[Any]:
    """Return the lines of a file, or for several sources tuples of line N of each.

    Raises UsageError for another number of files.
    """
    allowed = max(len(model.sources), 1)  # recordings and images have no language
    if len(names) != allowed:
        raise UsageError(
            f"--input {' '.join(names)}: the direction reads another number of files; allowed: "
            f"{allowed} ({', '.join(model.sources) or 'names of files in lines'})"
        )
    return read_lines(names[0]) if allowed == 1 else aligned_lines(names)


def aligned_lines(names: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield line N of all files; UsageError where one ends before another."""
    rows = itertools.zip_longest(*map(read_lines, names))
    for number, row in enumerate(rows, start=1):
        if None in row:
            shorter = names[row.index(None)]
            raise UsageError(
                f"--input {shown_name(shorter)}: ends before line {number}, which others have; "
                "line N of all files must mean the same"
            )
        yield row


@contextlib.contextmanager
def destination(output: str) -> Iterator[Callable[[str], object]]:
    """Yield what writes to the output: to a file that appears when all is done, or at once."""
    if output == STANDARD:
        sys.stdout.reconfigure(encoding="utf-8", newline="\n")  # type: ignore[union-attr]

        def write(text: str) -> None:
            sys.stdout.write(text)
            sys.stdout.flush()

        yield write
        return
    with atomic_path(output) as partial, open_text(partial) as file:
        yield file.write


def write_translations(
    model: Model, sentences: Iterable[Any], args: Namespace, write: Callable[[str], object]
) -> None:
    """Translate block by block; say on the standard error which lines cannot be translated."""
    from tqdm import tqdm

    options = search_options(args.search)
    is_typed = args.input == [STANDARD] and sys.stdin.isatty()
    if is_typed:
        print(f"{model}: a sentence in each line; Ctrl-D ends", file=sys.stderr)
    numbered = enumerate(sentences, start=1)
    # None: no bar where the standard error is no terminal
    with tqdm(unit=" lines", disable=True if is_typed else None) as bar:
        while block := list(itertools.islice(numbered, 1 if is_typed else BLOCK)):
            texts = [sentence for _, sentence in block]
            results = model.translate(
                texts, args.beam, batch=args.batch, attention=False, extras=False, **options
            )
            write("".join(result.text + "\n" for result in results))
            for (number, _), result in zip(block, results):
                if result.error and any(map(str.strip, as_tuple(result.source))):
                    place = f"{shown_name(args.input[0])}, line {number}"
                    tqdm.write(f"{place}: not translated: {result.error}", file=sys.stderr)
            bar.update(len(block))


def as_tuple(source: Any) -> tuple[str, ...]:
    """Return the texts of a sentence."""
    return (source,) if isinstance(source, str) else tuple(source)


def translate_text(args: Namespace) -> int:
    """Write the translations of the lines of the input."""
    search_options(args.search)
    check_inputs(args.input)
    if args.output != STANDARD:
        check_new(args.output, args.force)
        check_apart(args.output, [name for name in args.input if name != STANDARD])
    model = load_model(args)
    sentences = sentences_of(args.input, model)
    try:
        with destination(args.output) as write:
            write_translations(model, sentences, args, write)
    except ValueError as error:  # of options of the search
        raise UsageError(str(error)) from error
    return 0
