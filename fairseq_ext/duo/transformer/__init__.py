"""The Transformer of two streams (Sec. 3.2 - 3.4 of the paper)."""

from . import model  # noqa: F401  (registered)
