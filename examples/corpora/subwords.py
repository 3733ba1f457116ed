"""Subword models: sentencepiece BPE, and codes for fastBPE.

Each spells the text that it was learnt from, in one or more languages, and is undone exactly by
fairseq's `--bpe sentencepiece` and `--bpe fastbpe`, so that translations come out as plain text.
"""

import io
import itertools
import random
import unicodedata
from collections import Counter
from pathlib import Path
from typing import Iterator, Protocol, Sequence

from fairseq_ext.tools import UsageError

from .byte_pairs import learn_codes
from .files import lines_of, written

SEED = 1


class SubwordModel(Protocol):
    """What is learnt from text and spells text."""

    def __init__(self, model: Path):
        """Read the model file."""

    @staticmethod
    def learn(paths: Sequence[Path], vocabulary: int, count: int, model: Path) -> None:
        """Write the model file, of `count` lines drawn at random, 0 = all."""

    def encode(self, lines: Sequence[str]) -> list[str]:
        """Return lines of pieces separated by spaces, for lines of text."""


def sample(paths: Sequence[Path], count: int) -> Iterator[str]:
    """Return the lines of all `paths` one after the other, or `count` of them drawn at random."""
    lines = itertools.chain.from_iterable(map(lines_of, paths))
    if not count:
        return lines
    # reservoir sampling: one pass, `count` lines in memory
    rng, reservoir = random.Random(SEED), list[str]()
    for seen, line in enumerate(lines):
        if seen < count:
            reservoir.append(line)
        else:
            place = rng.randint(0, seen)
            if place < count:
                reservoir[place] = line
    return iter(reservoir)


class SentencePiece:
    """BPE of sentencepiece on NFKC-normalised text; spaces are part of the pieces."""

    @staticmethod
    def learn(paths: Sequence[Path], vocabulary: int, count: int, model: Path) -> None:
        """Write the model file. Raises UsageError when the text is too small for `vocabulary`."""
        import sentencepiece

        learnt = io.BytesIO()
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=sample(paths, count),
                model_writer=learnt,
                vocab_size=vocabulary,
                model_type="bpe",
                character_coverage=1.0,
                normalization_rule_name="nfkc",
                minloglevel=2,
            )
        except RuntimeError as error:
            texts = ", ".join(path.name for path in paths)
            raise UsageError(f"--vocabulary {vocabulary} does not fit {texts}: {error}") from error
        model.write_bytes(learnt.getvalue())

    def __init__(self, model: Path):
        import sentencepiece

        self.processor = sentencepiece.SentencePieceProcessor(model_file=str(model))

    def encode(self, lines: Sequence[str]) -> list[str]:
        """Return lines of pieces separated by spaces, for lines of text."""
        return [" ".join(pieces) for pieces in self.processor.encode(list(lines), out_type=str)]


class FastBPE:
    """Codes for fastBPE on NFKC-normalised text.

    There is no tokeniser to undo: merges never join letters with punctuation (see
    `byte_pairs.py`), so that "Sofa." becomes "Sofa@@ ." by itself.
    """

    @staticmethod
    def normalise(line: str) -> str:
        """Return the line in NFKC with single spaces."""
        return " ".join(unicodedata.normalize("NFKC", line).split())

    @staticmethod
    def learn(paths: Sequence[Path], vocabulary: int, count: int, model: Path) -> None:
        """Write the codes. Raises UsageError when the characters alone exceed `vocabulary`."""
        words: Counter[str] = Counter()
        for line in sample(paths, count):
            words.update(FastBPE.normalise(line).split())
        with written(model) as stream:
            for left, right, frequency in learn_codes(words, vocabulary):
                stream.write(f"{left} {right} {frequency}\n")

    def __init__(self, model: Path):
        try:
            import fastBPE
        except ImportError as error:
            raise UsageError(
                "--kind fastbpe needs the package fastBPE: pip install cython, then "
                "pip install --no-build-isolation fastBPE; --kind sentencepiece needs neither"
            ) from error
        self.applier = fastBPE.fastBPE(str(model))

    def encode(self, lines: Sequence[str]) -> list[str]:
        """Return lines of pieces separated by spaces, for lines of text."""
        return list(self.applier.apply([self.normalise(line) for line in lines]))


KINDS: dict[str, type[SubwordModel]] = {"sentencepiece": SentencePiece, "fastbpe": FastBPE}
