"""The task legacy_masked_lm and its blocks of text."""

from __future__ import annotations

import logging
from typing import Any

from ..patch_registry import PatchedModule, patch


@patch(
    "fairseq.data.legacy.block_pair_dataset",
    because="fairseq 0.12.2: legacy_masked_lm with --break-mode none looks blocks up by the sizes "
    "of blocks in place of those of the lines, ends in AssertionError, and has no list of pairs",
)
def blocks_are_cut_from_lines(module: PatchedModule) -> None:
    """Let the dataset find the lines that each block of equally many tokens begins and ends in."""
    import numpy as np

    def _sent_to_dataset_index(self: Any, sent_sizes: Any) -> list[tuple[int, int, int, int]]:
        """Return (first line, offset in it, last line, length) of blocks of sizes (N,)."""
        # lists that fairseq fills next, and makes with --break-mode doc only
        self.sent_pairs, self.sizes = [], []
        ends = np.cumsum(self.dataset.sizes)
        stops = np.cumsum(sent_sizes)
        starts = stops - sent_sizes
        first = np.searchsorted(ends, starts, side="right")
        last = np.searchsorted(ends, stops, side="left")
        offsets = starts - (ends[first] - np.asarray(self.dataset.sizes)[first])
        blocks = zip(first, offsets, last, sent_sizes)
        return [(int(b), int(offset), int(e), int(size)) for b, offset, e, size in blocks]

    module.BlockPairDataset._sent_to_dataset_index = _sent_to_dataset_index


@patch(
    "fairseq.tasks.legacy_masked_lm",
    because="fairseq 0.12.2: every set that legacy_masked_lm loads prints a traceback of logging",
)
def folders_are_logged(module: PatchedModule) -> None:
    """Leave out what does not fit into the text of a line of the log."""

    def fits(record: logging.LogRecord) -> bool:
        if "%" not in str(record.msg):
            record.args = ()
        return True

    module.logger.addFilter(fits)
