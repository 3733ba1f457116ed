"""The classifier of texts (Sec. 3.1 of the paper), with its task and its criterion."""

from . import criterion, model, task  # noqa: F401  (registered)
