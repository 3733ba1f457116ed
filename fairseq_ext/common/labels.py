"""Labels as entries of a fairseq dictionary: label number c is entry ``nspecial`` + c.

fairseq-preprocess puts special symbols before the words and fills the dictionary up with
"madeupword" entries after them; neither is a label.
"""

from typing import List, Optional, Sequence

import numpy as np
import torch
from fairseq.data import Dictionary
from torch import Tensor

MADE_UP = "madeupword"


def labels(dictionary: Dictionary) -> List[str]:
    """Return the names of the labels; score c of a model is that of label c."""
    words = dictionary.symbols[dictionary.nspecial :]
    # fairseq-preprocess fills a dictionary up to a multiple of --padding-factor
    return [word for word in words if not word.startswith(MADE_UP)]


def check_dictionary(dictionary: Dictionary, text: Dictionary, lang: str) -> None:
    """Raise ValueError for a dictionary of labels that is that of the texts, or has one label.

    lang: the "language" of the labels, as in dict.LANG.txt.
    """
    if dictionary.symbols == text.symbols:
        raise ValueError(
            f"dict.{lang}.txt is the dictionary of the texts, whose words would be labels; allowed:"
            " one of the labels alone, binarised without --joined-dictionary"
        )
    names = labels(dictionary)
    if len(names) < 2:
        raise ValueError(f"dict.{lang}.txt: {len(names)} labels ({names}), at least 2 needed")


def numbers(target: Tensor, dictionary: Dictionary) -> Tensor:
    """Return the numbers of the labels (B,) of targets (B, 2), a label and the end symbol each."""
    return target[:, 0] - dictionary.nspecial


def entry(number: int, dictionary: Dictionary) -> Tensor:
    """Return the hypothesis (1,) that consists of label ``number``."""
    return torch.tensor([number + dictionary.nspecial], device="cpu")


def _place(file: Optional[str], line: int, count: int) -> str:
    """Return the beginning of an error about a line; "" for a single line without a file."""
    if file:
        return f"{file}: line {line}: "
    return f"text {line} of {count}: " if count > 1 else ""


def check_texts(file: Optional[str], sizes: Sequence[int]) -> None:
    """Raise ValueError for a text without words; ``sizes`` count the end symbol.

    file: where the texts come from; None if they are not from a file.
    """
    empty = np.flatnonzero(np.asarray(sizes) < 2)  # the end symbol alone
    if len(empty):
        place = _place(file, empty[0] + 1, len(sizes))
        raise ValueError(f"{place}an empty text" + f" ({len(empty)} of them)" * bool(file))


def check_labels(
    file: Optional[str], targets: Sequence[Tensor], dictionary: Dictionary, lang: str
) -> None:
    """Raise ValueError, with the line, for a target that is not a label and the end symbol.

    lang: the "language" of the labels, as in dict.LANG.txt. file: as of ``check_texts``.
    """
    names = labels(dictionary)
    first, last = dictionary.nspecial, dictionary.nspecial + len(names)
    for line, target in enumerate(targets, start=1):
        place = _place(file, line, len(targets))
        if len(target) != 2:
            raise ValueError(f"{place}{len(target) - 1} words, a label is one")
        if not first <= int(target[0]) < last:
            raise ValueError(
                f"{place}a label that dict.{lang}.txt does not have; it has {', '.join(names[:10])}"
            )
