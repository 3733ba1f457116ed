"""Translations and references for `evaluate`: plain text, or what fairseq printed, as lines.

fairseq-generate and fairseq-interactive print, in the order of their batches,

    H-17<tab>-0.42<tab>text      a hypothesis after --post-process, the best of a sentence first
    D-17<tab>-0.42<tab>text      the same after --bpe and --tokenizer
    P-17<tab>-0.3 -0.5           base-2 log-probabilities of its tokens

where 17 is the number of the sentence, from 0.
"""

import re
import unicodedata
from pathlib import Path
from typing import Callable, Dict, List, Optional, Sequence, Union

from ...compat.generation.joined_texts import bytes_as_text
from ...compat.text_lines import UnreadableText, lines_of
from .. import UsageError

GENERATED = re.compile(r"[DH]-\d+\t-?(?:\d|inf|nan)")
SENTENCEPIECE = "▁"
CONTINUED = re.compile(r"@@( |$)")
File = Union[str, Path]
BPES = ("sentencepiece", "subword_nmt", "fastbpe")


def read_lines(path: File) -> List[str]:
    """Return the lines of a plain or .gz text file, without white space around them.

    Raises UsageError, naming the line, where it cannot be read.
    """
    try:
        return [line.strip() for line in lines_of(path)]
    except UnreadableText as error:
        raise UsageError(str(error)) from error


def marked_lines(lines: Sequence[str], mark: str, count: int, path: File) -> List[str]:
    """Return the text after the number of the first `mark` line of each sentence, by number.

    mark: "D", "H" or "P", see above. count: sentences of the set. Raises UsageError unless each
    has one (fairseq skips sentences over its length limits when it is told so), or where the lines
    of a sentence stand in two places: the file then holds the output of two commands.
    """
    texts: Dict[int, str] = {}
    previous = None
    for line in lines:
        if line.startswith(f"{mark}-"):
            number, _, text = line[2:].partition("\t")
            if not number.isdecimal():
                raise UsageError(f"{path}: {line[:40]!r} has no number after {mark}-")
            if number != previous and int(number) in texts:
                raise UsageError(
                    f"{path}: {mark}-{number} is there again, behind other sentences; allowed: "
                    "the output of one command"
                )
            # the best hypothesis of a sentence comes first
            texts.setdefault(int(number), text)
            previous = number
    if texts.keys() != set(range(count)):
        missing = sorted(set(range(count)) - set(texts))
        raise UsageError(
            f"{path}: {len(texts)} translations of {count} sentences; without one: "
            f"{', '.join(str(number + 1) for number in missing[:10]) or 'none'} (line numbers)"
        )
    return [texts[number] for number in range(count)]


def sentence_lines(path: File, mark: str, count: int) -> List[str]:
    """Return the `marked_lines` of a file."""
    return marked_lines(read_lines(path), mark, count, path)


def read_hypotheses(path: File, references: Sequence[str], reference_path: File) -> List[str]:
    """Return the translations in a file, as many as `references`; of n-best lists the best.

    Raises UsageError with both counts when there are more or fewer.
    """
    lines, count = read_lines(path), len(references)
    # marks, "H" or "D"; none in plain text
    printed = {line[0] for line in lines if GENERATED.match(line)}
    if printed:
        # D is the text after --bpe and --tokenizer; fairseq prints it behind H
        texts = marked_lines(lines, "D" if "D" in printed else "H", count, path)
        return [text.partition("\t")[2].strip() for text in texts]
    if len(lines) != count:
        raise UsageError(f"{path} has {len(lines)} lines and {reference_path} {count}")
    return lines


def subwords_left(lines: Sequence[str]) -> int:
    """Return how many lines hold marks of subwords."""
    return sum(SENTENCEPIECE in line or bool(CONTINUED.search(line)) for line in lines)


def normalised_away(texts: Sequence[str], references: Sequence[str]) -> int:
    """Return how many references have characters that Unicode's NFKC replaces; 0 if a text has any.

    The translations of a model whose sub-words are normalised have none. White space of all kinds
    is the same to the metrics.
    """

    def is_replaced(line: str) -> bool:
        return unicodedata.normalize("NFKC", line).split() != line.split()

    return 0 if any(map(is_replaced, texts)) else sum(map(is_replaced, references))


def joined_lines(lines: Sequence[str], bpe: Optional[str]) -> int:
    """Return how many lines hold blanks and nothing that `bpe` has cut; 0 unless most are such.

    Joining would delete their blanks. Pieces have the mark at the beginning of every line, and a
    line of plain text may hold it as a character.
    """
    if bpe != "sentencepiece":
        return 0
    blanks = [line for line in lines if " " in line]
    without = sum(SENTENCEPIECE not in line for line in blanks)
    return without if 2 * without > len(blanks) else 0


def join_subwords(line: str, bpe: Optional[str]) -> str:
    """Undo the splitting of words by `bpe`, one of BPES (fastBPE marks them as subword-nmt does).

    bpe: None leaves the line as it is.
    """
    if bpe is None:
        return line
    if bpe == "sentencepiece":
        # blanks are cuts, the mark is the blank
        return bytes_as_text(line).replace(" ", "").replace(SENTENCEPIECE, " ").strip()
    return CONTINUED.sub("", line)  # "un@@ seen" -> "unseen"


def moses_detokenizer(lang: str) -> Callable[[str], str]:
    """Return the function line -> detokenised line; UsageError where sacremoses is missing."""
    try:
        from sacremoses import MosesDetokenizer
    except ImportError as error:
        raise UsageError(
            "--tokenizer moses needs sacremoses; install it: pip install sacremoses"
        ) from error
    detokenizer = MosesDetokenizer(lang=lang)
    return lambda line: detokenizer.detokenize(line.split())
