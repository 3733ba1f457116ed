"""The symmetric setting: one Transformer component per language (Sec. 3 of the paper)."""

from . import model  # noqa: F401  (registered)
