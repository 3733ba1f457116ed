"""--load-alignments: which word of the source belongs to which of the target, in both directions.

fairseq-preprocess writes train.align.de-en beside train.de-en, which serves en-de as well.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import logging
import os
from typing import TYPE_CHECKING, Any

from ..patch_registry import PatchedModule, patch
from .data_files import UnreadableFile

if TYPE_CHECKING:
    from fairseq.data import LanguagePairDataset
    from torch import Tensor

logger = logging.getLogger(__name__)


@patch(
    "fairseq.tasks.translation",
    "fairseq.data.multilingual.multilingual_data_manager",
    because="fairseq 0.12.2: --load-alignments finds nothing where the files are those of the "
    "other direction, and says nothing; it reads the first part of a training set alone, and with "
    "a tag in front of the source or target it aligns the words before",
)
def alignments_are_of_the_words(module: PatchedModule) -> None:
    """Read the alignments of the files that the sentences come from, in the order asked for."""
    owner: Any = getattr(module, "MultilingualDatasetManager", module)
    stock = owner.load_langpair_dataset

    @functools.wraps(stock)
    def load_langpair_dataset(*args: Any, **options: Any) -> LanguagePairDataset:
        bound = inspect.signature(stock).bind(*args, **options)
        bound.apply_defaults()
        named = bound.arguments
        # by name: a patch of the same function takes some by name alone
        dataset: LanguagePairDataset = stock(**{**named, "load_alignments": False})
        if named["load_alignments"] and dataset.tgt is not None:
            dataset.align_dataset = alignments_of(dataset, named)
        return dataset

    owner.load_langpair_dataset = load_langpair_dataset


def alignments_of(dataset: LanguagePairDataset, options: dict[str, Any]) -> WordAlignments | None:
    """Return the alignments of the sentences, None with a warning if there are none.

    Args:
        dataset: the sentences.
        options: with which they were read.

    Raises UnreadableFile where they are those of other sentences.
    """
    from fairseq.data import ConcatDataset, data_utils, indexed_dataset

    implementation, parts = options["dataset_impl"], []
    names = [files_of(number, options) for number in parts_of(options)]
    for path, is_reversed in names:
        if not indexed_dataset.dataset_exists(path, implementation):
            continue
        part = data_utils.load_indexed_dataset(path, None, implementation)
        parts.append(WordAlignments(part, 0, 0, is_reversed))
    listed = " and ".join(path for path, _ in names)
    if not parts:
        logger.warning(f"--load-alignments: no {listed}; nothing is aligned of these sentences")
        return None
    # as stock repeats the first part
    ratios = [max(options["upsample_primary"], 1), *[1] * (len(parts) - 1)]
    joined = ConcatDataset(parts, ratios) if len(parts) > 1 else parts[0]
    if len(joined) != len(dataset):
        raise UnreadableFile(
            f"--load-alignments: {listed} have {len(joined)} lines; allowed: {len(dataset)}, as "
            "many as there are sentences"
        )
    return WordAlignments(joined, marks_of(dataset.src), marks_of(dataset.tgt))


def parts_of(options: dict[str, Any]) -> list[str]:
    """Return the parts of a set that are read: "", "1", "2", .., up to a gap."""
    from fairseq.data import indexed_dataset

    numbers = []
    for number in itertools.chain([""], map(str, itertools.count(1))):
        texts = (_text(number, options, is_reversed) for is_reversed in (False, True))
        implementation = options["dataset_impl"]
        if not any(indexed_dataset.dataset_exists(text, implementation) for text in texts):
            break
        numbers.append(number)
        if not options["combine"]:
            break
    return numbers


def _text(number: str, options: dict[str, Any], is_reversed: bool) -> str:
    """Return the file of the source, of the direction itself or of its reverse."""
    source, target = options["src"], options["tgt"]
    pair = f"{target}-{source}" if is_reversed else f"{source}-{target}"
    return os.path.join(options["data_path"], f"{options['split']}{number}.{pair}.{source}")


def files_of(number: str, options: dict[str, Any]) -> tuple[str, bool]:
    """Return the alignments of a part, and whether they are those of the other direction."""
    from fairseq.data import indexed_dataset

    source, target, implementation = options["src"], options["tgt"], options["dataset_impl"]
    start = os.path.join(options["data_path"], f"{options['split']}{number}.align.")
    direct, reverse = f"{start}{source}-{target}", f"{start}{target}-{source}"
    # sentences of the direction's own files may be others than those of its reverse
    is_other = not indexed_dataset.dataset_exists(_text(number, options, False), implementation)
    has_own = indexed_dataset.dataset_exists(direct, implementation)
    return (reverse, True) if is_other and not has_own else (direct, False)


def marks_of(dataset: Any) -> int:
    """Return the number of symbols, such as tags of languages, that stand in front of the words."""
    from fairseq.data import PrependTokenDataset

    marks = 0
    while hasattr(dataset, "dataset"):
        marks += isinstance(dataset, PrependTokenDataset) and dataset.token is not None
        dataset = dataset.dataset
    return marks


class WordAlignments:
    """Alignments of sentences (2 A,), numbers of words of a source and of a target in turn.

    Args:
        dataset: the same as they were stored, for fairseq's ``LanguagePairDataset``.
        source, target: what is added to each number.
        is_reversed: exchange source and target first.
    """

    def __init__(self, dataset: Any, source: int, target: int, is_reversed: bool = False):
        self.dataset, self.is_reversed = dataset, is_reversed
        self.first = [source, target]

    def __getitem__(self, index: int) -> Tensor:
        pairs: Tensor = self.dataset[index].view(-1, 2)  # (A, 2)
        pairs = pairs.flip(1) if self.is_reversed else pairs
        return (pairs + pairs.new_tensor(self.first)).flatten()

    def __len__(self) -> int:
        return len(self.dataset)

    @property
    def supports_prefetch(self) -> bool:
        """Return whether the files can be read ahead."""
        return getattr(self.dataset, "supports_prefetch", False)

    def prefetch(self, indices: Any) -> None:
        """Read the sentences ahead."""
        self.dataset.prefetch(indices)
