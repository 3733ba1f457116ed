"""Subword models: sentencepiece BPE, and codes for fastBPE.

Each spells the text that it was learnt from, in one or more languages, and is undone exactly by
fairseq's `--bpe sentencepiece` and `--bpe fastbpe`, so that translations come out as plain text.
"""

import io
import itertools
import random
import unicodedata
from collections import Counter

from . import RecipeError
from .files import lines_of, written

SEED = 1


def sample(paths, count):
    """Return the lines of all `paths` one after the other, or `count` of them drawn at random."""
    lines = itertools.chain.from_iterable(map(lines_of, paths))
    if not count:
        return lines
    # reservoir sampling: one pass, `count` lines in memory
    rng, reservoir = random.Random(SEED), []
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

    file = "sentencepiece.bpe.model"
    flag = "--sentencepiece-model"

    @staticmethod
    def learn(paths, vocabulary, count, model):
        """Write the model file. Raises RecipeError when the text is too small for `vocabulary`."""
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
            names = ", ".join(path.name for path in paths)
            raise RecipeError(f"vocabulary = {vocabulary} does not fit {names}: {error}") from error
        model.write_bytes(learnt.getvalue())

    def __init__(self, model):
        import sentencepiece

        self.processor = sentencepiece.SentencePieceProcessor(model_file=str(model))

    def encode(self, lines):
        """Return lines of pieces separated by spaces, for lines of text."""
        return [" ".join(pieces) for pieces in self.processor.encode(lines, out_type=str)]


class FastBPE:
    """Codes for fastBPE on NFKC-normalised text.

    There is no tokeniser to undo: merges never join letters with punctuation (see `codes.py`), so
    that "Sofa." becomes "Sofa@@ ." by itself.
    """

    file = "fastbpe.codes"
    flag = "--bpe-codes"

    @staticmethod
    def normalise(line):
        return " ".join(unicodedata.normalize("NFKC", line).split())

    @classmethod
    def learn(cls, paths, vocabulary, count, model):
        """Write the codes. Raises RecipeError when the characters alone exceed `vocabulary`."""
        words = Counter()
        for line in sample(paths, count):
            words.update(cls.normalise(line).split())
        # imports fairseq, which scripts without fastBPE need not wait for
        from corpora.byte_pairs import learn_codes

        from fairseq_ext.tools import UsageError

        try:
            codes = learn_codes(words, vocabulary)
        except UsageError as error:
            raise RecipeError(str(error)) from error
        with written(model) as stream:
            for left, right, frequency in codes:
                stream.write(f"{left} {right} {frequency}\n")

    def __init__(self, model):
        try:
            import fastBPE
        except ImportError as error:
            raise RecipeError(
                "--bpe fastbpe needs the package fastBPE: pip install cython, then "
                "pip install --no-build-isolation fastBPE; --bpe sentencepiece needs neither"
            ) from error
        self.applier = fastBPE.fastBPE(str(model))

    def encode(self, lines):
        """Return lines of pieces separated by spaces, for lines of text."""
        return self.applier.apply([self.normalise(line) for line in lines])


SUBWORDS = {"sentencepiece": SentencePiece, "fastbpe": FastBPE}
