"""Writes an experiment like dual/own for pairs and text of one's own.

The recipe was measured with 1,450 and 2,900 pairs. What it counts in passes or updates is set for
another number of pairs, so that as many pairs are seen from one validation to the next, and as many
passes are made before lines are translated, as there. docs/few-pairs.md explains the variables.
"""

import itertools
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Iterator

from fairseq_ext.compat.generation.word_blanks import lacks_blanks, tokenisers_for
from fairseq_ext.tools import AddValues, UsageError

from .files import aligned, check_outputs, find, lines_of, normalised, write_lines

PAIRS_TO_VALIDATION = 5000
PAIRS_PER_UPDATE = 5  # JOIN is the number of pairs divided by it: eight to nine passes
MOST_ALONE = 1140  # updates before lines are translated: more were not tried
# updates of both.longer up to so many pairs, and beyond: the numbers that were measured
LONGER = ((2000, 4560), (None, 9120))
SUBWORDS = 4000  # the default
SPLITS = ("train", "valid", "test")
LOOKED_AT = 2000  # lines of a training text, to see whether it has blanks


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "folder", metavar="FOLDER", type=Path, help="holds train, valid, test and mono"
    )
    parser.add_argument(
        "--languages",
        nargs="+",
        action=AddValues,
        required=True,
        metavar="LANGUAGE",
        help="endings of the files: two",
    )
    parser.add_argument("--output", metavar="FILE.toml", type=Path, required=True)
    parser.add_argument("--force", action="store_true", help="replace FILE.toml")


def run(args: Namespace) -> None:
    """Write the file, and print the command that trains. Raises UsageError for unfit files."""
    check_names(args.languages, args.output, args.force)
    inputs = [
        args.folder / f"{split}.{language}" for split in SPLITS for language in args.languages
    ]
    check_outputs([args.output], inputs)
    train = list(map(find, inputs))[:2]
    text = [text_of(args.folder, language) for language in args.languages]
    pairs = sum(all(map(normalised, lines)) for lines in aligned(*train))
    if not pairs:
        raise UsageError(f"{' and '.join(map(str, train))} have no line with text in both")
    counts = [sum(1 for line in lines_of(path) if normalised(line)) for path in text]
    source, target = args.languages
    counted = f"{pairs:,} pairs, {counts[0]:,} lines of {source}, {counts[1]:,} of {target}"
    write_lines(
        args.output,
        [
            f"# For {args.folder}. docs/few-pairs.md explains the variables.",
            "",
            'like = "dual/own"',
            f'title = "{counted}"',
            "",
            "[variables]",
            f'SOURCE = "{source}"',
            f'TARGET = "{target}"',
            *(f"{name} = {value}" for name, value in numbers(pairs, sum(counts) / 2).items()),
            *spelling(args.languages, train, text),
        ],
    )
    print(f"{args.output}: {counted}")
    system = advised(args.languages, train, text)
    print(f"next: python examples/run.py {args.output} {system} 1 --raw {args.folder}")


def check_names(languages: list[str], output: Path, force: bool) -> None:
    """Raise UsageError for languages and an output that run.py cannot take."""
    if len(languages) != 2 or languages[0] == languages[1] or "-" in "".join(languages):
        raise UsageError(
            f"--languages {' '.join(languages)}: allowed: two endings without a dash, as pt_BR"
        )
    if output.suffix != ".toml":
        raise UsageError(f"--output {output}: allowed: a name that ends in .toml")
    if output.exists() and not force:
        raise UsageError(f"--output {output} exists; allowed: another name, or --force")


def text_of(folder: Path, language: str) -> Path:
    """Return the file of the other text. Raises UsageError if there is none."""
    try:
        return find(folder / f"mono.{language}")
    except UsageError as error:
        raise UsageError(
            f"{error}; allowed for a language without other text: a copy of train.{language}"
        ) from error


def numbers(pairs: int, lines: float) -> dict[str, int]:
    """Return the variables that depend on the number of pairs, and of lines of a language."""
    return {
        "EVERY": max(1, round(PAIRS_TO_VALIDATION / pairs)),
        # with the translations of both sides there are three times the pairs
        "EVERY_DIVERSIFIED": max(1, round(PAIRS_TO_VALIDATION / (3 * pairs))),
        "JOIN": min(MOST_ALONE, max(1, round(pairs / PAIRS_PER_UPDATE))),
        "UPSAMPLED": max(1, int(lines / pairs)),
        "LONGER": next(updates for most, updates in LONGER if most is None or pairs <= most),
    }


def spelling(languages: list[str], train: list[Path], text: list[Path]) -> Iterator[str]:
    """Yield the variables for words without blanks, and for more characters than sub-words."""
    metrics = []
    for language, path in zip(languages, train):
        lines = list(itertools.islice(lines_of(path), LOOKED_AT))
        if lacks_blanks(lines):
            metrics.append(f"{language}={tokenisers_for(lines)[0]}")
    characters = set[str]()
    for line in itertools.chain.from_iterable(map(lines_of, [*train, *text])):
        characters.update(line if metrics else normalised(line))
    subwords = SUBWORDS
    if 2 * len(characters) > SUBWORDS:
        subwords = -(-(len(characters) + SUBWORDS // 2) // 1000) * 1000
    if metrics:
        yield 'BLEU_OF = "--eval-tokenized-bleu"'
        yield f'METRICS = "bleu chrf bleu_lower --tokenize {" ".join(metrics)}"'
    if metrics or subwords != SUBWORDS:
        identity = " --normalisation identity" if metrics else ""
        yield f'VOCABULARY = "--vocabulary {subwords}{identity}"'


def advised(languages: list[str], train: list[Path], text: list[Path]) -> str:
    """Return the system for the languages whose text is more than a copy of the pairs."""
    more = [
        language
        for language, pairs, lines in zip(languages, train, text)
        if any(a != b for a, b in itertools.zip_longest(lines_of(pairs), lines_of(lines)))
    ]
    if not more:
        return "tagged"
    return f"tagged.online.{more[0]}.annealed" if len(more) == 1 else "tagged.online.annealed"
