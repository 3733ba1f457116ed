"""Model-level dual learning (Xia, Tan, Tian, Qin, Yu and Liu; ICML 2018)."""

from . import model, task  # noqa: F401  (they register what they define)
