"""Speech recognition (Sec. 4.1 of the paper)."""

from . import model, task  # noqa: F401  (registered)
