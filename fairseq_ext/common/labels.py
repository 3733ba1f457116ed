"""Labels as entries of a fairseq dictionary: label number c is entry ``nspecial`` + c.

fairseq-preprocess puts special symbols before the words and fills the dictionary up with
"madeupword" entries after them; neither is a label.
"""

from typing import List, Sequence

import numpy as np
import torch
from torch import Tensor

MADE_UP = "madeupword"


def labels(dictionary) -> List[str]:
    """The names of the labels; number c of the model's scores is the label at c."""
    words = dictionary.symbols[dictionary.nspecial :]
    return [word for word in words if not word.startswith(MADE_UP)]


def numbers(target: Tensor, dictionary) -> Tensor:
    """Targets (B, 2), a label and the end symbol each -> numbers of labels (B,)."""
    return target[:, 0] - dictionary.nspecial


def entry(number: int, dictionary) -> Tensor:
    """The hypothesis (1,) that says label ``number``."""
    return torch.tensor([number + dictionary.nspecial])


def check_texts(file: str, sizes: Sequence[int], before: int = 0) -> None:
    """ValueError for a text of no words; ``sizes`` count the end symbol.

    before: lines of the file before these.
    """
    empty = np.flatnonzero(np.asarray(sizes) < 2)
    if len(empty):
        line = before + empty[0] + 1
        raise ValueError(f"{file}: line {line}: an empty text ({len(empty)} of them)")


def check_labels(
    file: str, targets: Sequence[Tensor], dictionary, lang: str, before: int = 0
) -> None:
    """ValueError, with the line, for what is not one known label and the end symbol.

    lang: "language" of the labels, whose dictionary it is. before: lines of the file before these.
    """
    names = labels(dictionary)
    first, last = dictionary.nspecial, dictionary.nspecial + len(names)
    for line, target in enumerate(targets, start=before + 1):
        if len(target) != 2:
            raise ValueError(f"{file}: line {line}: {len(target) - 1} words, a label is one")
        if not first <= int(target[0]) < last:
            raise ValueError(
                f"{file}: line {line}: a label that dict.{lang}.txt does not have; it has "
                f"{', '.join(names[:10])}"
            )
