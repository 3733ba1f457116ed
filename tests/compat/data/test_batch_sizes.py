"""Batches of --max-tokens."""

import numpy as np
import pytest


def test_fixed_shapes_have_sizes_of_their_own():
    from fairseq.data.data_utils import batch_by_size

    indices, lengths = np.arange(3), np.array([3, 9, 4])
    with pytest.raises(ValueError, match="--max-tokens 5 is less than the 9 tokens"):
        batch_by_size(indices, lengths.__getitem__, lengths, 5)
    shapes = np.array([[2, 10]])
    batches = batch_by_size(indices, lengths.__getitem__, lengths, 5, fixed_shapes=shapes)
    assert sorted(int(index) for batch in batches for index in batch) == [0, 1, 2]
