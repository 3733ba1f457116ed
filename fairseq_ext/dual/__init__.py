"""Model-level dual learning (Xia, Tan, Tian, Qin, Yu and Liu; ICML 2018)."""

# they register what they define
from . import criterion, lstm_criterion, lstm_model, model, separate, task  # noqa: F401
