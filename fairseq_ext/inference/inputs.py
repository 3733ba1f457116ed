"""What callers give: texts, tuples of texts, recordings, features -> lines as tasks read them."""

import itertools
import os
import re
import tempfile
from pathlib import Path
from typing import Any, Iterable, Iterator, List, NamedTuple, Optional, Sized, Tuple

import numpy as np
from fairseq.tasks import FairseqTask

from ..multiway.task import SEPARATOR
from ..twin.captions.task import read_features
from .recordings import features_of

SURROGATES = re.compile("[\ud800-\udfff]")  # bytes that were not UTF-8
TEXTS = ("translation", "classification", "language_model")


class Input(NamedTuple):
    """What the caller gave, the line that the task reads, or why there is none."""

    given: Any
    line: str
    error: Optional[str] = None


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

    def buffers(self, given: Iterable[Any], size: int, progress: bool) -> Iterator[List[Input]]:
        """Yield lists of at most ``size`` inputs; TypeError, with its number, for what is none."""
        if isinstance(given, (str, bytes)):
            raise TypeError(f"sentences: a {type(given).__name__}; allowed: a list or an iterator")
        bar = None
        if progress:
            from tqdm import tqdm

            total = len(given) if isinstance(given, Sized) else None
            bar = tqdm(total=total, unit=" sentences")
        numbered = enumerate(given)
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

    def input(self, number: int, given: Any) -> Input:
        """Return one input; TypeError for what the model does not read."""
        if self.kind in TEXTS:
            return Input(given, self._text(number, given))
        if isinstance(given, np.ndarray):
            return Input(given, self._file_of(given))
        if not isinstance(given, (str, os.PathLike)):
            raise TypeError(
                f"input {number}: {type(given).__name__}; allowed: the name of a file, or an array "
                "of features"
            )
        path = Path(given)
        try:
            if self.kind == "speech" and path.suffix.lower() == ".wav":
                return Input(given, self._file_of(features_of(path, self.task)))
            if self.kind == "captions" and not path.is_file():
                path = Path(self.task.cfg.features or self.task.cfg.data) / path
            if not path.is_file():
                raise ValueError(f"there is no {given}")
            if path.suffix == ".npy":
                read_features(str(path))  # one that cannot be read would end its whole batch
        except ValueError as error:
            return Input(given, "", str(error))
        return Input(given, str(path))

    def _text(self, number: int, given: Any) -> str:
        """Return a text, or the texts of several sources with ||| between them."""
        if len(self.sources) < 2 or isinstance(given, str):
            if not isinstance(given, str):
                raise TypeError(f"sentence {number}: {type(given).__name__}; allowed: str")
            return SURROGATES.sub("\ufffd", given).strip()
        is_tuple = isinstance(given, (tuple, list)) and len(given) == len(self.sources)
        if not is_tuple or not all(isinstance(text, str) for text in given):
            raise TypeError(
                f"sentence {number}: {given!r:.80}; allowed: a tuple of {len(self.sources)} texts, "
                f"in {', '.join(self.sources)}"
            )
        return f" {SEPARATOR} ".join(SURROGATES.sub("\ufffd", text).strip() for text in given)

    def _file_of(self, features: np.ndarray) -> str:
        """Return the name of a file with the features, for tasks that read files."""
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="fairseq-ext-")
        path = os.path.join(self._folder.name, f"{next(self._files)}.npy")
        np.save(path, features)
        return path
