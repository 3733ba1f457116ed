"""fairseq-preprocess --alignfile: the most frequent translation of each word."""

from __future__ import annotations

import argparse
import functools
from typing import TYPE_CHECKING, Any

from .patch_registry import PatchedModule, patch

if TYPE_CHECKING:
    from fairseq.data import Dictionary


class NumbersOfWords:
    """A dictionary whose lines are lists of numbers in place of tensors."""

    def __init__(self, dictionary: Dictionary) -> None:
        self._dictionary = dictionary

    def __getattr__(self, name: str) -> Any:
        return getattr(self._dictionary, name)

    def __getitem__(self, number: int) -> str:
        return str(self._dictionary[number])

    def encode_line(self, line: str, **options: Any) -> list[int]:
        """Return the numbers of the words of a line."""
        numbers: list[int] = self._dictionary.encode_line(line, **options).tolist()
        return numbers


@patch(
    "fairseq_cli.preprocess",
    because="fairseq 0.12.2: --alignfile counts each occurrence of a word by itself, so that "
    "alignment.xx-yy.txt has a line for each of them, and --replace-unk takes the last translation "
    "of a word in place of the most frequent",
)
def translations_are_counted(module: PatchedModule) -> None:
    """Count by numbers: tensors, which stock counts by, differ from each other as keys."""
    stock = module._align_files

    @functools.wraps(stock)
    def _align_files(args: argparse.Namespace, src_dict: Dictionary, tgt_dict: Dictionary) -> None:
        stock(args, NumbersOfWords(src_dict), NumbersOfWords(tgt_dict))

    module._align_files = _align_files
