"""`rindex` of bitarray.util, which fairseq's Huffman coder calls."""

from __future__ import annotations

from typing import Any

from ..module_overlay import overlay_names
from ..patch_registry import PatchedModule, patch, since


def rindex(bits: Any, value: int = 1) -> int:
    """Return the position of the last bit of this value; ValueError where there is none."""
    position = bits.find(value, right=True)
    if position < 0:
        raise ValueError(f"{value} is not in the bitarray")
    return int(position)


@patch(
    "fairseq.data.huffman.huffman_coder",
    because="bitarray 3.0 dropped util.rindex: decoding Huffman codes fails",
    conditions=[since("bitarray", 3, 0)],
)
def bitarray_rindex(module: PatchedModule) -> None:
    """Show the Huffman coder a bitarray.util that still has `rindex`."""
    overlay_names(module, "util", rindex=rindex)
