"""Texts and dictionaries that are read as they are, without fairseq-preprocess."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..command_line.preprocess_input import count_lines
from ..patch_registry import PatchedModule, patch
from ..surrounded_calls import call_before
from ..text_lines import BYTE_ORDER_MARK, lines_of

if TYPE_CHECKING:
    from fairseq.data import Dictionary


@patch(
    "fairseq.data.indexed_dataset",
    because="fairseq 0.12.2: --dataset-impl raw takes a byte order mark for a part of the first "
    "word, which is unknown then, and begins another line at a carriage return within one",
)
def raw_texts_are_read_as_binarised(module: PatchedModule) -> None:
    """Read the lines that fairseq-preprocess would, and check them as it does."""
    import numpy

    def read_data(self: Any, path: str, dictionary: Dictionary) -> None:
        """Fill `lines`, `tokens_list` and `sizes`."""
        count_lines(path)
        for line in lines_of(path):
            tokens = dictionary.encode_line(
                line,
                add_if_not_exist=False,
                append_eos=self.append_eos,
                reverse_order=self.reverse_order,
            ).long()
            self.lines.append(line)
            self.tokens_list.append(tokens)
            self.sizes.append(len(tokens))
        self.sizes = numpy.array(self.sizes)

    module.IndexedRawTextDataset.read_data = read_data


@patch(
    "fairseq.data.dictionary",
    because="fairseq 0.12.2 takes a byte order mark for a part of the first symbol of a "
    "dictionary, so that this word is unknown in every text",
)
def dictionaries_have_no_byte_order_mark(module: PatchedModule) -> None:
    """Remove the mark from the first line of a dictionary."""

    def remove_mark(self: Dictionary, lines: list[str]) -> None:
        lines[:1] = [line.removeprefix(BYTE_ORDER_MARK) for line in lines[:1]]

    call_before(module.Dictionary, "_load_meta", remove_mark)
