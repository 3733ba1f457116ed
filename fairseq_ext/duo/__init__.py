"""Duo: attention over two embeddings of the same text (Li, Lin, Zhou and Li; arXiv 2003.01371)."""

from . import classifier, transformer  # noqa: F401  (they register what they define)
