"""Reference implementations of sequence-to-sequence papers, as a fairseq plugin."""

from . import compat

compat.require_fairseq()
compat.activate()

# importing a system registers what it defines
from . import common, dual, duo, multiway, routed, twin  # noqa: E402,F401

__version__ = "0.1.0"
