"""Routed multi-task learning: recurrent units with shared blocks (Zaremoodi et al., 2018)."""

from . import model, task  # noqa: F401  (they register what they define)
