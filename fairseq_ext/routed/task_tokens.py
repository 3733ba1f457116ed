"""Task tokens: the first token of every source says which task it is for.

They are entries of the source dictionary, behind its words. Users never see them: sentences are
read, printed and aligned without them. A word of a text that is spelt like one is unknown, as it
is to fairseq-preprocess, whose dictionary has none.
"""

from typing import Any, Callable, List, Tuple, Union

import torch
from fairseq.data import Dictionary
from fairseq.tokenizer import tokenize_line

PREFIX = "__task_"
# of a hypothesis: hard, soft, or none (an empty tensor)
Alignment = Union[List[Tuple[int, int]], List[List[str]], torch.Tensor]


def token_of(pair: str) -> str:
    """Return the token of a task."""
    return f"{PREFIX}{pair}__"


class TaskDictionary(Dictionary):
    """A dictionary that gets task tokens, which no text has.

    Attributes:
        task_tokens: their indices, those alone that were added behind the words.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.task_tokens: List[int] = []

    def encode_line(
        self,
        line: str,
        line_tokenizer: Callable[[str], List[str]] = tokenize_line,
        add_if_not_exist: bool = True,
        *more: Any,
        **options: Any,
    ) -> torch.Tensor:
        """Return the indices (T,) of a line's words, as ``Dictionary`` does."""
        indices: torch.Tensor = super().encode_line(
            line, line_tokenizer, add_if_not_exist, *more, **options
        )
        # words are added where texts are compared, not where a model reads them
        if self.task_tokens and not add_if_not_exist:
            indices[indices >= self.task_tokens[0]] = self.unk()
        return indices


def add_task_tokens(dictionary: TaskDictionary, pairs: List[str]) -> None:
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
    if not present:
        dictionary.task_tokens += [dictionary.add_symbol(symbol) for symbol in tokens]


def without_task_token(alignment: Alignment) -> Alignment:
    """Return fairseq's alignment of a hypothesis, as if its source began behind the first token.

    alignment: hard [(source word, target word)], soft [the weights of each target word as text],
        or an empty tensor where none was asked for.
    """
    if not isinstance(alignment, list):
        return alignment
    hard = [(entry[0] - 1, entry[1]) for entry in alignment if isinstance(entry, tuple)]
    return hard or [entry[1:] for entry in alignment if isinstance(entry, list)]


class PrintedSources(TaskDictionary):
    """A source dictionary that writes sentences as they were given: without their task token.

    Its symbols are those of ``dictionary``, also the ones that are added later.
    """

    def __init__(self, dictionary: TaskDictionary) -> None:
        self.__dict__.update(vars(dictionary))  # shared: symbols that are added later are here too

    def string(self, tensor: torch.Tensor, *more: Any, **options: Any) -> str:
        """Return the text of tokens (S,) or (B, S), as ``Dictionary`` does."""
        if tensor.dim() == 1 and len(tensor) and self[int(tensor[0])].startswith(PREFIX):
            tensor = tensor[1:]
        return super().string(tensor, *more, **options)
