"""The Huffman coder of fairseq decodes what it encoded."""

import pytest
from bitarray import bitarray

from fairseq_ext.compat.versions.huffman import rindex


def test_the_last_bit_of_a_value():
    assert rindex(bitarray("0100100"), 1) == 4
    assert rindex(bitarray("0100100")) == 4
    assert rindex(bitarray("0111"), 0) == 0
    with pytest.raises(ValueError, match="1 is not in the bitarray"):
        rindex(bitarray("000"), 1)


def test_text_survives():
    from fairseq.data.huffman.huffman_coder import HuffmanCodeBuilder

    builder = HuffmanCodeBuilder()
    lines = [["a", "b", "a"], ["c"], ["a", "d", "e", "a", "b"]]
    for line in lines:
        builder.add_symbols(*line)
    coder = builder.build_code()
    for line in lines:
        assert [node.symbol for node in coder.decode(coder.encode(line))] == line
