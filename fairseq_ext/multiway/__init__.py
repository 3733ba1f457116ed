"""Multi-way, multilingual translation with a shared attention (Firat, Cho and Bengio; 2016)."""

from . import model, task  # noqa: F401  (they register what they define)
