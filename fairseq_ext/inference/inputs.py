"""What callers give: texts, tuples of texts, recordings, features -> lines as tasks read them."""

import itertools
import os
import re
import tempfile
from pathlib import Path
from typing import Any, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Sized, Tuple

import numpy as np
from fairseq.data import Dictionary
from fairseq.tasks import FairseqTask
from torch import Tensor

from ..compat.generation.line_translator import without_symbols
from ..compat.text_lines import BYTE_ORDER_MARK, LINE_BREAKS
from ..multiway.task import SEPARATOR
from ..twin.captions.dataset import read_features
from .recordings import features_of

SURROGATES = re.compile("[\ud800-\udfff]")  # bytes that were not UTF-8
EMPTY = "an empty text"
TEXTS = ("translation", "classification", "language_model")


class Input(NamedTuple):
    """What the caller gave, the line that the task reads, or why there is none."""

    original: Any
    line: str
    error: Optional[str] = None


def with_words(entry: Input, sources: int) -> Input:
    """Return an input, with an error if it is an empty text: a model would invent a translation.

    sources: of the model; a text in each, with ||| between them.
    """
    texts = entry.line.split(SEPARATOR) if sources > 1 else [entry.line]
    if any(text.strip() for text in texts):
        return entry
    return entry._replace(error=EMPTY)


def check_several(name: str, values: Any) -> None:
    """Raise TypeError for what holds no texts, and for one, all characters of which would be.

    The keys of a dictionary would be texts, too.
    """
    if isinstance(values, Mapping):
        raise TypeError(f"{name}: a {type(values).__name__}; allowed: its values() or keys()")
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise TypeError(f"{name}: a {type(values).__name__}; allowed: a list or an iterator")


def one_line(text: str) -> str:
    """Return a text as a line of a file: sub-word models would join the words at a line break.

    A byte order mark, which files begin with, is no part of the first word.
    """
    text = SURROGATES.sub("\ufffd", text.removeprefix(BYTE_ORDER_MARK))
    lines = (line.strip() for line in LINE_BREAKS.split(text))
    return " ".join(line for line in lines if line)


def encode_words(dictionary: Dictionary, line: str) -> Tensor:
    """Return the tokens (T,) of a line; what is spelt like a special symbol is unknown."""
    return dictionary.encode_line(without_symbols(line, dictionary), add_if_not_exist=False).long()


class Inputs:
    """Makes lines of what callers give. A context: it holds files of features while it lasts.

    Args:
        kind: of the model.
        sources: its source languages.
        task: of the model.
    """

    def __init__(self, kind: str, sources: Tuple[str, ...], task: FairseqTask):
        self.kind, self.sources, self.task = kind, sources, task
        self._folder: Optional[tempfile.TemporaryDirectory] = None
        self._files = itertools.count()

    def __enter__(self) -> "Inputs":
        return self

    def __exit__(self, *_exception: Any) -> None:
        if self._folder is not None:
            self._folder.cleanup()

    def buffers(self, original: Iterable[Any], size: int, progress: bool) -> Iterator[List[Input]]:
        """Yield lists of at most ``size`` inputs; TypeError, with its number, for what is none."""
        check_several("sentences", original)
        bar = None
        if progress:
            from tqdm import tqdm

            total = len(original) if isinstance(original, Sized) else None
            bar = tqdm(total=total, unit=" sentences")
        numbered = enumerate(original)
        try:
            while True:
                part = list(itertools.islice(numbered, size))
                if not part:
                    return
                yield [self.input(number, entry) for number, entry in part]
                if bar is not None:
                    bar.update(len(part))
        finally:
            if bar is not None:
                bar.close()

    def input(self, number: int, original: Any) -> Input:
        """Return one input; TypeError for what the model does not read."""
        if self.kind in TEXTS:
            return Input(original, self._text(number, original))
        if isinstance(original, np.ndarray):
            return Input(original, self._file_of(original))
        if not isinstance(original, (str, os.PathLike)):
            raise TypeError(
                f"input {number}: {type(original).__name__}; allowed: the name of a file, or an "
                "array of features"
            )
        path = Path(original)
        try:
            if self.kind == "speech" and path.suffix.lower() == ".wav":
                return Input(original, self._file_of(features_of(path, self.task)))
            if self.kind == "captions" and not path.is_file():
                path = Path(self.task.cfg.features or self.task.cfg.data) / path
            if not path.is_file():
                raise ValueError(f"there is no {original}")
            if path.suffix == ".npy":
                read_features(str(path))  # one that cannot be read would end its whole batch
        except ValueError as error:
            return Input(original, "", str(error))
        return Input(original, str(path))

    def _text(self, number: int, original: Any) -> str:
        """Return a text, or the texts of several sources with ||| between them."""
        if len(self.sources) < 2 or isinstance(original, str):
            if not isinstance(original, str):
                raise TypeError(f"sentence {number}: {type(original).__name__}; allowed: str")
            return one_line(original)
        is_tuple = isinstance(original, (tuple, list)) and len(original) == len(self.sources)
        if not is_tuple or not all(isinstance(text, str) for text in original):
            raise TypeError(
                f"sentence {number}: {original!r:.80}; allowed: a tuple of {len(self.sources)} "
                f"texts, in {', '.join(self.sources)}"
            )
        return f" {SEPARATOR} ".join(map(one_line, original))

    def _file_of(self, features: np.ndarray) -> str:
        """Return the name of a file with the features, for tasks that read files."""
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="fairseq-ext-")
        path = os.path.join(self._folder.name, f"{next(self._files)}.npy")
        np.save(path, features)
        return path
