"""Reference implementations of sequence-to-sequence papers, as a fairseq plugin."""

from . import common, dual  # noqa: F401

__version__ = "0.1.0"
