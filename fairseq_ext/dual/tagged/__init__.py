"""One transformer of all directions, a baseline (Johnson et al. 2017)."""

from . import model  # noqa: F401  (registered)
