"""``twin_speech_lstm``: characters from filter banks, for fairseq's task ``speech_to_text``.

The equations are in speech_modules.py; contract.py says what the criterion ``twin`` needs.
"""

from dataclasses import dataclass, field
from typing import Any, Optional, Tuple

from fairseq.dataclass import FairseqDataclass
from fairseq.models import FairseqEncoderDecoderModel, register_model
from omegaconf import II

from ..common.architectures import architecture
from ..streams.direction import TargetSide
from .contract import BackwardDecoder, decode
from .feature_source import FeatureSource
from .speech_modules import Decoder, Encoder, Size, Window, mirrored

BY_TASK = "set by the task from its config.yaml, not to be given"


@dataclass
class TwinSpeechConfig(FairseqDataclass):
    encoder_hidden_size: int = field(
        default=250,
        metadata={"help": "G, LSTM units of an encoder layer in each direction (paper: 250)"},
    )
    time_reduction: str = field(
        default="1,1,2,2",
        metadata={
            "help": "r of each encoder layer, the lowest first: it reads every r-th state of what "
            "is below it (paper: 1,1,2,2)"
        },
    )
    embed_dim: int = field(
        default=250, metadata={"help": "E, width of embeddings of characters (paper: 250)"}
    )
    hidden_size: int = field(
        default=250, metadata={"help": "H, LSTM units of each decoder (paper: 250)"}
    )
    attention_size: int = field(
        default=250, metadata={"help": "A, width of the attention (paper: 250)"}
    )
    readout_size: int = field(
        default=250, metadata={"help": "O, tanh units before the softmax (paper: 250)"}
    )
    conv_filters: int = field(
        default=10, metadata={"help": "filters F of the location features (paper: 10)"}
    )
    conv_width: int = field(
        default=201, metadata={"help": "their width in encoded positions, odd (paper: 201)"}
    )
    dropout: float = field(
        default=0.0,
        metadata={"help": "on encoder layers, embeddings and the readout (paper: 0)"},
    )
    window_updates: int = field(
        default=0,
        metadata={
            "help": "updates of pre-training, in which the attention's window moves forward only "
            "(paper: an epoch; 0 = none)"
        },
    )
    window: str = field(
        default="40,1.2,2.2",
        metadata={
            "help": "FIRST,SLOWEST,FASTEST: the character number j from 0 sees the encoded "
            "positions from SLOWEST * j to FIRST + FASTEST * j in pre-training"
        },
    )
    input_feat_per_channel: int = field(default=80, metadata={"help": f"features: {BY_TASK}"})
    input_channels: int = field(default=1, metadata={"help": BY_TASK})
    speaker_to_id: Any = field(default=None, metadata={"help": BY_TASK})
    max_source_positions: int = II("task.max_source_positions")
    max_target_positions: int = II("task.max_target_positions")


def numbers(option: str, text: str, kind) -> Tuple:
    """The numbers of a list with commas. Raises ValueError naming the option."""
    try:
        return tuple(kind(word) for word in text.split(","))
    except ValueError:
        raise ValueError(f"{option} {text!r}: must be numbers with commas between them") from None


def size_of(cfg) -> Size:
    """The ``Size`` of a ``TwinSpeechConfig``."""
    return Size(
        encoder_hidden_size=cfg.encoder_hidden_size,
        embed_dim=cfg.embed_dim,
        hidden_size=cfg.hidden_size,
        attention_size=cfg.attention_size,
        readout_size=cfg.readout_size,
        conv_filters=cfg.conv_filters,
        conv_width=cfg.conv_width,
        time_reduction=numbers("--time-reduction", cfg.time_reduction, int),
        dropout=cfg.dropout,
    )


def window_of(cfg) -> Window:
    """The ``Window`` of a ``TwinSpeechConfig``. Raises ValueError naming the option."""
    found = numbers("--window", cfg.window, float)
    if len(found) != 3 or found[0] < 1 or not 0 <= found[1] <= found[2]:
        raise ValueError(
            f"--window {cfg.window!r}: must be FIRST,SLOWEST,FASTEST with FIRST from 1 and "
            "0 <= SLOWEST <= FASTEST"
        )
    if cfg.window_updates < 0:
        raise ValueError(f"--window-updates {cfg.window_updates}: must be at least 0")
    return Window(*found)


def run(decoder: Decoder, tokens, condition):
    """A decoder, teacher-forced: (logits (B, T, V), extra), s (B, T, H).

    condition: h (B, S, 2G), padding (B, S) and the window or None.
    """
    annotations, padding, window = condition
    hidden = window.hidden(padding, tokens.size(1)) if window else None
    readout, found = decoder.run(tokens, annotations, padding, hidden)
    return (decoder.logits(readout), {"attn": [found.weights]}), found.states


def run_backward(decoder: Decoder, tokens, condition):
    """The same for the backward network, which begins at the end of h."""
    annotations, padding, window = condition
    return run(decoder, tokens, (mirrored(annotations, padding), padding, window))


@register_model("twin_speech_lstm", dataclass=TwinSpeechConfig)
class TwinSpeechModel(FairseqEncoderDecoderModel):
    """Bidirectional LSTMs over frames, an attentive LSTM over characters.

    Args:
        encoder: frames -> h.
        decoder: around a ``Decoder``.
        window: of pre-training.
        window_updates: how many updates it lasts.
    """

    def __init__(
        self, encoder: FeatureSource, decoder: TargetSide, window: Window, window_updates: int = 0
    ):
        super().__init__(encoder, decoder)
        self.window, self.window_updates, self.num_updates = window, window_updates, 0

    @classmethod
    def build_model(cls, cfg: TwinSpeechConfig, task):
        size, dictionary = size_of(cfg), task.target_dictionary
        encoder = Encoder(size, cfg.input_feat_per_channel * cfg.input_channels)
        decoder = Decoder(size, len(dictionary), dictionary.pad())
        return cls(
            FeatureSource(encoder, None, cfg.max_source_positions),
            TargetSide(decoder, dictionary, cfg.max_target_positions, need_attention=True),
            window_of(cfg),
            cfg.window_updates,
        )

    @classmethod
    def build_backward(cls, cfg: TwinSpeechConfig, task) -> BackwardDecoder:
        size, dictionary = size_of(cfg), task.target_dictionary
        decoder = Decoder(size, len(dictionary), dictionary.pad())
        return BackwardDecoder(decoder, size.hidden_size, run_backward)

    def set_num_updates(self, num_updates):
        super().set_num_updates(num_updates)
        self.num_updates = num_updates

    @property
    def pretraining_window(self) -> Optional[Window]:
        """The window, while it is used."""
        moving = self.training and self.num_updates < self.window_updates
        return self.window if moving else None

    def forward(self, src_tokens, src_lengths, prev_output_tokens, twin=None, **_unused):
        """Frames (B, F, D), their numbers (B,), characters (B, T) -> logits (B, T, V), extra.

        twin: see contract.py.
        """
        encoded = self.encoder(src_tokens, src_lengths)["encoded"][0]
        condition = (*encoded, self.pretraining_window)
        return decode(run, self.decoder.module, prev_output_tokens, condition, twin)


architecture(
    "twin_speech_lstm",
    "twin_speech_lstm_tiny",
    encoder_hidden_size=64,
    time_reduction="1,2,2",
    embed_dim=32,
    hidden_size=96,
    attention_size=64,
    readout_size=64,
    conv_width=31,
)
