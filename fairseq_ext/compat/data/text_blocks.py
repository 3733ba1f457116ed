"""Language models: the blocks of text that they are trained on."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Tuple

from ..patch_registry import PatchedModule, patch

if TYPE_CHECKING:
    import numpy as np
    from fairseq.data import MonolingualDataset, TokenBlockDataset
    from numpy.typing import NDArray

    Indices = NDArray[np.integer[Any]]


@patch(
    "fairseq.data.token_block_dataset",
    because="fairseq 0.12.2: the size of a block is stored in 16 bits unless --tokens-per-sample "
    "is larger, but a line is a block of its own with --sample-break-mode eos, and may be with "
    "complete: 70,000 tokens count as 4,464",
)
def blocks_have_their_size(module: PatchedModule) -> None:
    """Store sizes that 16 bits cannot hold in 32."""
    # the commands that import neither torch nor numpy import this file
    import numpy as np

    dataset = module.TokenBlockDataset
    stock = dataset._build_slice_indices

    @functools.wraps(stock)
    def _build_slice_indices(*args: Any, **named: Any) -> Tuple[Indices, Indices, Indices]:
        sizes, blocks, slices = stock(*args, **named)
        exact = slices[:, 1].astype(np.int64) - slices[:, 0].astype(np.int64)
        if (sizes != exact).any():
            sizes = exact.astype(np.uint32)
        return sizes, blocks, slices

    dataset._build_slice_indices = staticmethod(_build_slice_indices)


@patch(
    "fairseq.data.token_block_dataset",
    because="fairseq 0.12.2: with --sample-break-mode complete_doc, text of empty lines alone ends "
    "in 'cannot reshape array of size 0'",
)
def text_without_blocks_is_named(module: PatchedModule) -> None:
    """Raise ValueError with the option; an empty line ends a document, and is in no block."""
    dataset = module.TokenBlockDataset
    stock = dataset._build_slice_indices

    @functools.wraps(stock)
    def _build_slice_indices(
        sizes: Any, break_mode: str | None, document_sep_len: int, block_size: int | None
    ) -> Tuple[Indices, Indices, Indices]:
        try:
            slices: Tuple[Indices, Indices, Indices] = stock(
                sizes, break_mode, document_sep_len, block_size
            )
            return slices
        except ValueError:
            if break_mode != "complete_doc" or max(sizes) > max(1, document_sep_len):
                raise
            raise ValueError(
                f"--sample-break-mode complete_doc leaves nothing of a set of {len(sizes)} empty "
                "lines, which only separate documents; allowed: a set with words, or none, "
                "complete and eos, with which an empty line is an end symbol"
            ) from None

    dataset._build_slice_indices = staticmethod(_build_slice_indices)


@patch(
    "fairseq.data.token_block_dataset",
    because="fairseq 0.12.2: with --past-target, a block of one token, such as an empty line, has "
    "three targets and more; with numpy 2 it warns of an overflow, also without the option",
)
def past_targets_have_the_length_of_their_block(module: PatchedModule) -> None:
    """Predict one token for each token of the block."""
    import numpy as np

    dataset = module.TokenBlockDataset
    stock = dataset.__getitem__

    @functools.wraps(stock)
    def __getitem__(self: TokenBlockDataset, index: int) -> Any:
        # numpy 2 takes 1 - 2 in 16 bits: stock cuts the past at 65535 instead of -1, its targets
        # are too long in both cases, and the first of them are right
        with np.errstate(over="ignore"):
            item = stock(self, index)
        if not self.include_targets:
            return item
        source, future, past = item
        return source, future, past[: len(future)]

    dataset.__getitem__ = __getitem__


@patch(
    "fairseq.data.monolingual_dataset",
    because="fairseq 0.12.2: --output-dictionary-size writes <unk> for the words that are not "
    "predicted into the source, too, in blocks that begin within a line: their source and target "
    "share memory",
)
def words_are_read_that_are_not_written(module: PatchedModule) -> None:
    """Replace words in copies of the targets."""
    dataset = module.MonolingualDataset
    stock = dataset._filter_vocab

    @functools.wraps(stock)
    def _filter_vocab(self: MonolingualDataset, target: Any) -> Any:
        if target is None or len(self.tgt_vocab) == len(self.vocab):
            return target
        copies = [words.clone() for words in target] if isinstance(target, list) else target.clone()
        return stock(self, copies)

    dataset._filter_vocab = _filter_vocab
