"""Sources with tokens in front of their words that are no words."""

from typing import Sequence

import numpy as np
import torch
from fairseq.data import BaseWrapperDataset, FairseqDataset, LanguagePairDataset
from torch import Tensor

from ..compat.data.aligned_pairs import WordAlignments


class MarkedSources(BaseWrapperDataset):
    """Sentences with tokens in front; their text, as --replace-unk reads it, is without them.

    Args:
        dataset: the sentences.
        marks: the tokens.
        place: the number of tokens of a sentence in front of which they stand.
    """

    def __init__(self, dataset: FairseqDataset, marks: Sequence[int], place: int = 0):
        super().__init__(dataset)
        self.marks, self.place = list(marks), place
        self._sizes = np.asarray(dataset.sizes) + len(self.marks)

    def __getitem__(self, index: int) -> Tensor:
        tokens = self.dataset[index]
        marks = tokens.new_tensor(self.marks)
        return torch.cat([tokens[: self.place], marks, tokens[self.place :]])

    @property
    def sizes(self) -> np.ndarray:
        """Return the lengths with the tokens."""
        return self._sizes

    def num_tokens(self, index: int) -> int:
        """Return the length of a sentence with the tokens."""
        return int(self._sizes[index])

    def size(self, index: int) -> int:
        """Return the length of a sentence with the tokens."""
        return int(self._sizes[index])

    def get_original_text(self, index: int) -> str:
        """Return the sentence as it stands in the data."""
        return str(self.dataset.get_original_text(index))


def marked(dataset: FairseqDataset, marks: Sequence[int]) -> FairseqDataset:
    """Return the sentences behind the tokens, or as they are where there are no tokens."""
    return MarkedSources(dataset, marks) if marks else dataset


def with_sources(plain: LanguagePairDataset, source: FairseqDataset) -> LanguagePairDataset:
    """Return the sentence pairs with other sources, whose words stand behind their marks."""
    aligned = plain.align_dataset
    if aligned is not None and isinstance(source, MarkedSources):
        aligned = WordAlignments(aligned, len(source.marks), 0)
    return LanguagePairDataset(
        source,
        source.sizes,
        plain.src_dict,
        plain.tgt,
        plain.tgt_sizes,
        plain.tgt_dict,
        left_pad_source=plain.left_pad_source,
        left_pad_target=plain.left_pad_target,
        shuffle=plain.shuffle,
        align_dataset=aligned,
        eos=plain.eos,
        pad_to_multiple=plain.pad_to_multiple,
    )
