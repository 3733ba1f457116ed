"""Layers, losses and helpers that more than one system uses."""

from . import criterion  # noqa: F401  (registers the criterion)
