"""Numbers that are a function of their keys."""

import pytest
import torch

from fairseq_ext.common.hashed_random import key_of, mixed, uniform

ROWS, COLUMNS = torch.arange(2000), torch.arange(50)


def test_keys_are_the_same_in_every_process():
    assert key_of(1, 2, "de-en") == 197219101  # hash() of a text differs between processes
    assert len({key_of(*keys) for keys in ((1, 2), (2, 1), (12,), ("1", "2"))}) == 4


def test_a_number_depends_on_its_row_column_and_key_alone():
    whole = uniform(ROWS, COLUMNS, 7)
    order = torch.randperm(len(ROWS))
    assert torch.equal(uniform(ROWS[order], COLUMNS, 7), whole[order])
    assert torch.equal(uniform(ROWS[5:6], COLUMNS[3:4], 7), whole[5:6, 3:4])
    assert not torch.equal(uniform(ROWS, COLUMNS, 8), whole)


@pytest.mark.parametrize("key", [0, 1, key_of(3, 17, "xx-yy@mono")])
def test_numbers_are_uniform_and_independent(key):
    """Bounds are 4 standard errors of what independent uniform numbers would show."""
    numbers = uniform(ROWS, COLUMNS, key).double()
    count = numbers.numel()
    assert 0 < numbers.min() and numbers.max() < 1
    assert abs(numbers.mean() - 1 / 2) < 4 * (1 / 12 / count) ** 0.5
    assert abs(numbers.square().mean() - 1 / 3) < 4 * (4 / 45 / count) ** 0.5
    for shifted in (numbers.roll(1, 0), numbers.roll(1, 1), uniform(ROWS, COLUMNS, key + 1)):
        product = (numbers - 0.5) * (shifted - 0.5)
        assert abs(product.mean()) < 4 / 12 / count**0.5


def test_different_numbers_stay_different():
    assert len(torch.unique(mixed(torch.arange(100000), 5))) == 100000
