"""Labels as entries of a fairseq dictionary: label number c is entry ``nspecial`` + c.

fairseq-preprocess puts special symbols before the words and fills the dictionary up with
"madeupword" entries after them; neither is a label.
"""

from typing import List

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
