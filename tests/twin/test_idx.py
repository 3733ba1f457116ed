"""Files of the idx format: what is damaged is named."""

import struct

import numpy as np
import pytest

from fairseq_ext.tools import UsageError
from fairseq_ext.twin.commands.idx import read_idx


def idx(array, code=8):
    header = bytes([0, 0, code, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    return header + array.astype(np.uint8).tobytes()


@pytest.mark.parametrize(
    "content, message",
    [
        (b"", "begins with nothing; allowed: an idx file of unsigned bytes in 3 dimensions"),
        (b"\x89PNG\r\n", "begins with 89 50 4e 47"),
        (idx(np.zeros((2, 2))), "begins with 00 00 08 02"),
        (idx(np.zeros((2, 2, 2)), code=0x0D), "begins with 00 00 0d 03"),
        (idx(np.zeros((2, 3, 4)))[:-1], "2 x 3 x 4 bytes after its header are announced, 23 fol"),
        (idx(np.zeros((2, 3, 4))) + b"x", "25 follow"),
    ],
)
def test_malformed_files_are_named(tmp_path, content, message):
    (tmp_path / "bad.idx").write_bytes(content)
    with pytest.raises(UsageError, match=f"bad.idx.* ?{message}"):
        read_idx(tmp_path / "bad.idx", 3)
