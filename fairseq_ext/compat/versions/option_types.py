"""The type of an option that may be None, however it is written: Optional[int] or int | None."""

from __future__ import annotations

import sys
import typing
from typing import Any

from ..patch_registry import PatchedModule, patch, since


def optional_type(field_type: Any) -> Any:
    """Return X of the type `Optional[X]` or `X | None`, and every other type as it is.

    Of a union of several types and None it is the first, which fairseq takes too.
    """
    kinds: tuple[Any, ...] = (typing.Union,)
    if sys.version_info >= (3, 10):
        import types

        kinds += (types.UnionType,)  # the type of `int | None`, and since 3.14 of Optional[int]
    is_union = typing.get_origin(field_type) in kinds
    members = typing.get_args(field_type)
    if not is_union or type(None) not in members:
        return field_type
    return next((member for member in members if member is not type(None)), field_type)


@patch(
    "fairseq.dataclass.utils",
    because="Python 3.14 writes Optional[X] as 'X | None', which fairseq does not recognise: "
    "importing fairseq fails with 'str | None is not callable'; since 3.10 options may be "
    "declared so",
    conditions=[since("python", 3, 10)],
)
def optional_types_are_recognised(module: PatchedModule) -> None:
    """Ask the type of an option for its members; fairseq compares how it is written."""
    stock = module.interpret_dc_type

    def interpret_dc_type(field_type: Any) -> Any:
        return optional_type(stock(field_type))

    module.interpret_dc_type = interpret_dc_type
