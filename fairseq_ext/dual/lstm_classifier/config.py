"""Options of the asymmetric setting, and its named architectures."""

from dataclasses import dataclass, field
from typing import Optional

from fairseq.dataclass import FairseqDataclass
from omegaconf import II

from ...common.architectures import architecture


@dataclass
class DualLSTMConfig(FairseqDataclass):
    """Options of ``dual_lstm_classifier``; its named sizes set some of them.

    Lengths are in words, the end of the text included; the limits come from the task.
    """

    embed_dim: int = field(
        default=256, metadata={"help": "D, width of the word embedding (paper: 500)"}
    )
    hidden_size: int = field(
        default=256,
        metadata={"help": "H, number of units of the LSTM and width of E_y (paper: 1024)"},
    )
    dropout: float = field(
        default=0.5,
        metadata={"help": "dropout rate on word vectors and before both softmaxes (paper: 0.5)"},
    )
    label_lang: str = field(
        default="label", metadata={"help": "side of the pair that holds the labels, one a line"}
    )
    lang_pairs: Optional[str] = II("task.lang_pairs")
    max_source_positions: int = II("task.max_source_positions")
    max_target_positions: int = II("task.max_target_positions")


def register_architectures(name: str) -> None:
    """Register the sizes of the model ``name``, once its class is registered."""
    architecture(name, f"{name}_tiny", embed_dim=16, hidden_size=24, dropout=0.1)
    architecture(name, f"{name}_imdb", embed_dim=500, hidden_size=1024, dropout=0.5)
