"""Task tokens: the first token of every source says which task it is for.

They are entries of the source dictionary, behind its words. Users never see them: sentences are
read, printed and aligned without them.
"""

from typing import Any, List, Tuple, Union

import torch
from fairseq.data import Dictionary

PREFIX = "__task_"
# of a hypothesis: hard, soft, or none (an empty tensor)
Alignment = Union[List[Tuple[int, int]], List[List[str]], torch.Tensor]


def token_of(pair: str) -> str:
    """Return the token of a task."""
    return f"{PREFIX}{pair}__"


def add_task_tokens(dictionary: Dictionary, pairs: List[str]) -> None:
    """Append the tokens of tasks to a source dictionary, in the order of their names.

    A second call changes nothing. ValueError when the dictionary has the tokens of other tasks:
    checkpoints of an ensemble must have been trained on the same pairs.
    """
    tokens = [token_of(pair) for pair in sorted(pairs)]
    present = [symbol for symbol in dictionary.symbols if symbol.startswith(PREFIX)]
    # other tokens would shift the rows of the embedding
    if present and present != tokens:
        raise ValueError(
            f"--lang-pairs: the source dictionary has the task tokens {', '.join(present)}, "
            f"the model needs {', '.join(tokens)}"
        )
    for symbol in tokens if not present else ():
        dictionary.add_symbol(symbol)


def without_task_token(alignment: Alignment) -> Alignment:
    """Return fairseq's alignment of a hypothesis, as if its source began behind the first token.

    alignment: hard [(source word, target word)], soft [the weights of each target word as text],
        or an empty tensor where none was asked for.
    """
    if not isinstance(alignment, list):
        return alignment
    hard = [(entry[0] - 1, entry[1]) for entry in alignment if isinstance(entry, tuple)]
    return hard or [entry[1:] for entry in alignment if isinstance(entry, list)]


class PrintedSources(Dictionary):
    """A source dictionary that writes sentences as they were given: without their task token.

    Its symbols are those of ``dictionary``, also the ones that are added later.
    """

    def __init__(self, dictionary: Dictionary) -> None:
        self.__dict__.update(vars(dictionary))  # shared: symbols that are added later are here too

    def string(self, tensor: torch.Tensor, *more: Any, **options: Any) -> str:
        """Return the text of tokens (S,) or (B, S), as ``Dictionary`` does."""
        if tensor.dim() == 1 and len(tensor) and self[int(tensor[0])].startswith(PREFIX):
            tensor = tensor[1:]
        return super().string(tensor, *more, **options)
