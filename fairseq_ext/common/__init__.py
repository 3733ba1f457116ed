"""Layers, losses and helpers that more than one system uses."""

from . import criterion, optimizer, translation_task  # noqa: F401  (they register)
