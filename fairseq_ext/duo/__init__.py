"""Duo: attention over two embeddings of the same text (arXiv 2003.01371)."""
