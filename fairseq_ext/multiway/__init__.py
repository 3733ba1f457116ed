"""Multi-way, multilingual translation with a shared attention (Firat, Cho and Bengio; 2016)."""

# they register what they define
from . import deep_fusion, model, task  # noqa: F401
