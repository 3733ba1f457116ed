"""Stock fairseq models with a twin: LSTM, Transformer, language model."""

from . import lstm, transformer  # noqa: F401  (registered)
