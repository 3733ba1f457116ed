"""Dual supervised learning (Xia et al. 2017b), a baseline: two models tied by the duality gap."""

from . import criterion, model  # noqa: F401  (registered)
