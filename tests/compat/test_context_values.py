"""Values that hold within a block."""

from contextvars import ContextVar

import pytest

from fairseq_ext.compat.context_values import holding


def test_a_value_holds_within_its_block_however_it_ends():
    variable = ContextVar("a variable", default=0)
    with holding(variable, 1):
        with pytest.raises(KeyError), holding(variable, 2):
            assert variable.get() == 2
            raise KeyError
        assert variable.get() == 1
    assert variable.get() == 0
