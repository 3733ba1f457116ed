"""Which directions of a run have the same sentences (--schedule joint).

fairseq-preprocess writes train.de-en, which serves de-en and en-de. A folder may hold train.en-de
as well: the same text again, or text for that direction alone, such as back-translations.
"""

import filecmp
import itertools
import logging
import os
from typing import Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

import numpy as np
from fairseq.data import FairseqDataset, indexed_dataset

from .language_pair import LanguagePair, reverse_of, source_of

logger = logging.getLogger(__name__)
FILES = ("", ".bin", ".idx", ".vocab")  # of fairseq's kinds of indexed datasets


def prefixes(path: str, split: str, pair: str, combine: bool, impl: Optional[str]) -> List[str]:
    """Return the files of a pair without their language: "data/train.de-en", "data/train1.de-en".

    As fairseq's ``load_langpair_dataset`` finds them: those of the direction, else of its reverse.
    """
    source = source_of(pair)
    names: List[str] = []
    # train, train1, train2, .. up to a gap
    numbers: Iterable[int] = itertools.count() if combine else (0,)
    for number in numbers:
        start = os.path.join(path, split + (str(number) if number else ""))
        both = (f"{start}.{pair}", f"{start}.{reverse_of(pair)}")
        present = [
            name for name in both if indexed_dataset.dataset_exists(f"{name}.{source}", impl)
        ]
        if not present:
            break
        names.append(present[0])  # both may be there: the direction's own goes first
    return names


def is_same_text(prefix: str, other_prefix: str) -> bool:
    """True if two indexed datasets, named without .bin and .idx, hold the same bytes.

    Their sizes are compared first, and a file with itself is not read.
    """
    for end in FILES:
        file, other = prefix + end, other_prefix + end
        exist = [os.path.exists(name) for name in (file, other)]
        if not any(exist):  # of another kind of dataset
            continue
        if not all(exist):
            return False
        if not (os.path.samefile(file, other) or filecmp.cmp(file, other, shallow=False)):
            return False
    return True


def has_same_sentences(pair: str, files: Sequence[str], reverse_files: Sequence[str]) -> bool:
    """True if sentence N of a pair is sentence N of its reverse.

    Args:
        pair: such as "de-en".
        files: its ``prefixes``.
        reverse_files: those of its reverse.
    """
    langs = LanguagePair.parse(pair)
    return len(files) == len(reverse_files) and all(
        file == other or all(is_same_text(f"{file}.{lang}", f"{other}.{lang}") for lang in langs)
        for file, other in zip(files, reverse_files)
    )


def sentence_sets(files: Mapping[str, Sequence[str]]) -> Dict[str, str]:
    """Return {pair: name of its set of sentences}: a pair's own, or one name for both directions.

    Args:
        files: {pair: its ``prefixes``}.
    """
    names: Dict[str, str] = {}
    for pair in files:
        reverse = reverse_of(pair)
        if pair in names:
            continue
        names[pair] = pair
        if reverse not in files:
            continue
        if has_same_sentences(pair, files[pair], files[reverse]):
            # the same name whichever direction is named first: it seeds the order of batches
            names[pair] = names[reverse] = min(pair, reverse)
            continue
        names[reverse] = reverse
        logger.info(
            f"{pair} ({', '.join(files[pair])}) and {reverse} ({', '.join(files[reverse])}) have "
            "other sentences: each direction has batches of its own"
        )
    return names


class BothDirections(FairseqDataset):
    """The sentences of both directions of a language pair, as batches of them are cut.

    A sentence pair is as long as in the direction in which it is longer: --truncate-source cuts
    another side in each, and a direction may begin its sources with a token.
    """

    def __init__(self, parts: Sequence[FairseqDataset]):
        super().__init__()
        self.parts = list(parts)

    def __len__(self) -> int:
        return len(self.parts[0])

    def ordered_indices(self) -> np.ndarray:
        """Return the sentence numbers in the order in which batches are cut."""
        indices = self.parts[0].ordered_indices()
        if self.get_batch_shapes() is None:
            return indices
        # batches of fixed shapes are cut from sentences of growing length
        # stable: equal lengths stay shuffled
        return indices[np.argsort(self.num_tokens_vec(indices), kind="stable")]

    def num_tokens(self, index: int) -> int:
        """Return the length of a sentence pair in tokens."""
        return max(part.num_tokens(index) for part in self.parts)

    def num_tokens_vec(self, indices: np.ndarray) -> np.ndarray:
        """Return the lengths of several sentence pairs."""
        return np.maximum.reduce([part.num_tokens_vec(indices) for part in self.parts])  # (N,)

    def get_batch_shapes(self) -> Optional[List[Tuple[Optional[int], int]]]:
        """Return (None, tokens) of every bucket of --num-batch-buckets; None without them."""
        shapes = [part.get_batch_shapes() for part in self.parts]
        if any(shape is None for shape in shapes):
            return None
        return sorted({shape for part in shapes for shape in part}, key=lambda shape: shape[1])
