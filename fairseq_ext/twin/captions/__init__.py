"""Image captioning (Sec. 4.2 of the paper)."""

from . import model, task  # noqa: F401  (registered)
