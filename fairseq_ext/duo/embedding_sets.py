"""The sets of vectors S and P of a model that is being built: from files, or drawn at random."""

import os
from typing import NamedTuple, Optional

from fairseq.data import Dictionary
from torch import nn

from ..compat.user_errors import option_of
from . import embedding_files
from .config import EmbeddingsConfig


class EmbeddingSet(NamedTuple):
    """A set of vectors of a model that is being built.

    prefix: of its options, "" or "target_". stream: "s" or "p". table: the vectors.
    path: the file that they were read from, None if they were not.
    """

    prefix: str
    stream: str
    table: nn.Embedding
    path: Optional[str]

    @property
    def name(self) -> str:
        """Return the name in ``frozen_embeddings``, such as "s" or "target_p"."""
        return self.prefix + self.stream

    @property
    def is_frozen(self) -> bool:
        """True if training leaves the vectors as they are."""
        return not self.table.weight.requires_grad


def embedding_set(
    cfg: EmbeddingsConfig,
    prefix: str,
    stream: str,
    dictionary: Dictionary,
    default_dim: int,
    unit: bool = False,
) -> EmbeddingSet:
    """Return the set S or P of the options.

    default_dim: its width without a file and without an option. unit: see ``embedding``.
    """
    names = f"{prefix}embed_path_{stream}", f"{prefix}embed_dim_{stream}"
    path, width = (getattr(cfg, name) for name in names)
    if path is not None and not os.path.isfile(path):
        reason = "a folder" if os.path.isdir(path) else "there is no such file"
        raise ValueError(f"{option_of(names[0], path)}: {reason}; allowed: a file of word vectors")
    if width is not None and width < 1:
        raise ValueError(f"{option_of(names[1])} {width}: must be at least 1")
    # without a file and without a width, S and P are as wide as the model
    if path is None and width is None:
        width = default_dim
    label = (prefix + stream).replace("_", " ").upper()
    table = embedding_files.embedding(label, dictionary, path, width, unit)
    return EmbeddingSet(prefix, stream, table, path)
