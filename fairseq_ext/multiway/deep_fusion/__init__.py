"""Deep fusion with a language model, the baseline Single+DF (Gulcehre et al. 2015)."""

from . import language_model, model  # noqa: F401  (registered)
