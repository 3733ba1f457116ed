"""Labels for Levenshtein and insertion transformers without fairseq's C++ extension `libnat`.

`suggested_ed2_path` gives what the function of this name in the extension gives: the insertions and
deletions that turn one sentence into another, with as few of them as possible.
"""

from __future__ import annotations

import importlib.util
import sys
from typing import TYPE_CHECKING, Any, Sequence

from ..patch_registry import PatchedModule, patch

if TYPE_CHECKING:
    import numpy as np

FAR = 1 << 20  # more than the distance of any two sentences


def suggested_ed2_path(
    inputs: Sequence[Sequence[int]], outputs: Sequence[Sequence[int]], terminal: int
) -> list[list[list[int]]]:
    """Return, for each pair of sentences, what has to be inserted and deleted.

    Of S words this is a list of S + 2 lists. List i < S + 1 holds the words that are inserted
    behind the first i words of the input, or ``[terminal]`` for none; the last holds 1 for each
    word that is deleted and 0 for each that stays.
    """
    distances = edit_distances(inputs, outputs)
    return [
        _edit_path(distance, source, target, terminal)
        for distance, source, target in zip(distances, inputs, outputs)
    ]


def edit_distances(
    inputs: Sequence[Sequence[int]], outputs: Sequence[Sequence[int]]
) -> np.ndarray[Any, Any]:
    """Return the numbers of insertions and deletions between all prefixes of two sentences.

    The result is (B, S + 1, T + 1), for B pairs of at most S and T words: entry (b, i, j) is for
    the first i words of input b and the first j words of output b.
    """
    import numpy as np

    sources = _padded(inputs, -1)  # (B, S)
    targets = _padded(outputs, -2)  # (B, T); unequal padding never matches
    size, steps = sources.shape
    columns = np.arange(targets.shape[1] + 1)  # (T + 1,)
    distances = np.empty((size, steps + 1, len(columns)), dtype=np.int32)
    distances[:, 0] = columns
    for step in range(steps):
        above = distances[:, step]  # (B, T + 1)
        best = above + 1  # a deletion
        equal = sources[:, step, None] == targets  # (B, T)
        best[:, 1:] = np.minimum(best[:, 1:], np.where(equal, above[:, :-1], FAR))
        # any number of insertions behind it: the minimum over k <= j of best[k] + (j - k)
        distances[:, step + 1] = np.minimum.accumulate(best - columns, axis=1) + columns
    return distances


def _padded(sentences: Sequence[Sequence[int]], padding: int) -> np.ndarray[Any, Any]:
    """Return the sentences as one array, (B, longest), filled up with `padding`."""
    import numpy as np

    longest = max((len(sentence) for sentence in sentences), default=0)
    rows = [[*sentence, *[padding] * (longest - len(sentence))] for sentence in sentences]
    return np.array(rows, dtype=np.int64).reshape(len(sentences), longest)


def _edit_path(
    distance: np.ndarray[Any, Any], source: Sequence[int], target: Sequence[int], terminal: int
) -> list[list[int]]:
    """Return the lists of one pair. From the end, an insertion goes before a deletion."""
    rows = distance.tolist()
    insertions: list[list[int]] = [[] for _ in range(len(source) + 1)]
    deletions = [0] * len(source)
    i, j = len(source), len(target)
    while i or j:
        if j and rows[i][j - 1] < rows[i][j]:
            j -= 1
            insertions[i].append(target[j])
        elif i and rows[i - 1][j] < rows[i][j]:
            i -= 1
            deletions[i] = 1
        else:
            i, j = i - 1, j - 1
    return [*(words[::-1] or [terminal] for words in insertions), deletions]


def extension_is_missing() -> str | None:
    """Return None if fairseq's extension was not built, else that it was."""
    if importlib.util.find_spec("fairseq.libnat") is None:
        return None
    return "not needed: fairseq.libnat was built"


@patch(
    "fairseq.models.nat.levenshtein_utils",
    "fairseq.models.nat.insertion_transformer",
    because="fairseq 0.12.2: its archive on PyPI lacks the sources of the extension libnat, and "
    "without it levenshtein_transformer and insertion_transformer cannot be trained",
    conditions=[extension_is_missing],
)
def edit_paths_without_extension(module: PatchedModule) -> None:
    """Put this module in the place of the extension."""
    import fairseq

    replacement = sys.modules[__name__]
    # both files import it with `from fairseq import libnat`
    fairseq.libnat = replacement
    if hasattr(module, "load_libnat"):
        # fairseq's prints at every step that there is no extension for CUDA either
        module.load_libnat = lambda: (replacement, False)
