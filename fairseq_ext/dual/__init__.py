"""Model-level dual learning (Xia, Tan, Tian, Qin, Yu and Liu; ICML 2018)."""

# they register what they define
from . import lstm_classifier, supervised, tagged, task, transformer  # noqa: F401
