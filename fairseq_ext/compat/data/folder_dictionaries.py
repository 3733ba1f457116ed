"""Several data folders of a training, A:B, have one dictionary: that of the first is read."""

from __future__ import annotations

import filecmp
import os
from itertools import zip_longest
from typing import Any, Iterator, Mapping

from ..user_errors import OptionError


def folders_have_one_dictionary(values: Mapping[str, Any]) -> None:
    """Raise OptionError where a folder's dictionary numbers the words otherwise than the first's.

    Its data would be other words, and nothing would tell. A dictionary that another one only goes
    on from numbers its words alike; a folder may have none.

    values: all options of a training.
    """
    data = values.get("data")
    # as fairseq.utils.split_paths, which leaves addresses whole
    if not isinstance(data, str) or "://" in data:
        return
    first, *others = data.split(os.pathsep)
    for folder in others:
        for name in _dictionaries_in(first):
            ours, theirs = os.path.join(first, name), os.path.join(folder, name)
            if os.path.isfile(theirs) and not filecmp.cmp(ours, theirs, shallow=False):
                _check_words(ours, theirs)


def _dictionaries_in(folder: str) -> list[str]:
    """Return the names of dict.txt and dict.LANG.txt in a folder; none without the folder."""
    if not os.path.isdir(folder):
        return []
    names = sorted(os.listdir(folder))
    return [name for name in names if name.startswith("dict.") and name.endswith(".txt")]


def _check_words(ours: str, theirs: str) -> None:
    """Raise OptionError for the first line of both that has another word; counts may differ."""
    for number, (word, other) in enumerate(zip_longest(_words(ours), _words(theirs)), 1):
        if word is None or other is None:
            return
        if word != other:
            raise OptionError(
                f"{theirs}, line {number}: {_text(other)!r} in place of {_text(word)!r} in {ours}, "
                "by which the words of all data folders are numbered; allowed: folders of "
                "fairseq-preprocess with --srcdict and --tgtdict of the first"
            )


def _words(path: str) -> Iterator[bytes]:
    """Yield the word of each line: what stands before its count."""
    with open(path, "rb") as stream:
        for line in stream:
            # as fairseq splits a line: a word may contain blanks, its count may not
            yield line.rstrip().removesuffix(b" #fairseq:overwrite").rpartition(b" ")[0]


def _text(word: bytes) -> str:
    """Return a word as it is shown."""
    return word.decode("utf-8", "replace")
