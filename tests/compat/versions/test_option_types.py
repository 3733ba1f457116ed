"""Options that may be None, in all three spellings."""

import argparse
import dataclasses
import sys
from typing import Any, List, Optional, Union

import pytest

from fairseq_ext.compat.versions.option_types import optional_type


@pytest.mark.parametrize(
    "field_type, expected",
    [
        (Optional[int], int),
        (Optional[List[int]], List[int]),
        (Union[None, str], str),
        (Union[int, str, None], int),
        (Union[int, str], Union[int, str]),
        (List[Optional[int]], List[Optional[int]]),
        (float, float),
        (Any, Any),
    ],
)
def test_the_type_that_is_not_none(field_type, expected):
    assert optional_type(field_type) == expected


@pytest.mark.skipif(sys.version_info < (3, 10), reason="Python 3.9 has no `int | None`")
def test_a_vertical_bar_is_the_same():
    assert optional_type(int | None) is int
    assert optional_type(None | float) is float


@pytest.mark.skipif(sys.version_info < (3, 10), reason="Python 3.9 has no `int | None`")
def test_fairseq_makes_options_of_both_spellings():
    from fairseq.dataclass import FairseqDataclass
    from fairseq.dataclass.utils import gen_parser_from_dataclass, interpret_dc_type

    @dataclasses.dataclass
    class Options(FairseqDataclass):
        depth: Optional[int] = None
        width: int | None = None
        sizes: Optional[List[int]] = None

    parser = argparse.ArgumentParser()
    gen_parser_from_dataclass(parser, Options())
    words = ["--depth", "3", "--width", "4", "--sizes", "5,6"]
    values = parser.parse_args(words)
    assert (values.depth, values.width, values.sizes) == (3, 4, [5, 6])
    assert interpret_dc_type(Any) is str
    with pytest.raises(RuntimeError, match="should be a type"):
        interpret_dc_type("int")
