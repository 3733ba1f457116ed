"""The asymmetric setting: an LSTM that classifies texts and writes them (Sec. 2.2 of the paper)."""

from . import criterion, model  # noqa: F401  (registered)
