"""``twin_speech_lstm``: characters from filter banks, for fairseq's task ``speech_to_text``.

The equations are in modules.py; contract.py says what the criterion ``twin`` needs.
"""

from dataclasses import dataclass, field
from typing import Any, Callable, Optional, Tuple, TypeVar

from fairseq.dataclass import FairseqDataclass
from fairseq.models import FairseqEncoderDecoderModel, register_model
from fairseq.tasks import FairseqTask
from omegaconf import II
from torch import Tensor

from ...common.architectures import architecture
from ...streams.direction import TargetSide
from ..attentive.feature_source import FeatureSource
from ..contract import BackwardDecoder, TwinCall, decode
from .modules import SpeechDecoder, SpeechEncoder, SpeechSize, Window, mirrored

WINDOW = "40,1.2,2.2"
Number = TypeVar("Number", int, float)
# h (B, S, 2G), padding (B, S), the window of pre-training
Condition = Tuple[Tensor, Tensor, Optional[Window]]
Output = Tuple[Tuple[Tensor, Any], Tensor]
BY_TASK = "set by the task from its config.yaml, not to be given"
WRITTEN = {"written_by": "the task, from the settings of the recordings,"}


@dataclass
class TwinSpeechConfig(FairseqDataclass):
    """Options of ``twin_speech_lstm``.

    Lengths of sources are in frames, those of targets in symbols. ``size_of``
    and ``window_of`` raise ValueError for lists of numbers that cannot be read.
    """

    encoder_hidden_size: int = field(
        default=250,
        metadata={
            "help": "G, number of LSTM units of an encoder layer in each direction (paper: 250)"
        },
    )
    time_reduction: str = field(
        default="1,1,2,2",
        metadata={
            "help": "r of each encoder layer, the lowest first: a layer reads every r-th state of "
            "the layer below it (paper: 1,1,2,2)"
        },
    )
    embed_dim: int = field(
        default=250, metadata={"help": "E, width of character embeddings (paper: 250)"}
    )
    hidden_size: int = field(
        default=250, metadata={"help": "H, number of LSTM units of each decoder (paper: 250)"}
    )
    attention_size: int = field(
        default=250, metadata={"help": "A, width of the attention (paper: 250)"}
    )
    readout_size: int = field(
        default=250, metadata={"help": "O, number of tanh units before the softmax (paper: 250)"}
    )
    conv_filters: int = field(
        default=10, metadata={"help": "number of filters F of the location features (paper: 10)"}
    )
    conv_width: int = field(
        default=201,
        metadata={
            "help": "width of the filters F in encoded positions, an odd number (paper: 201)"
        },
    )
    dropout: float = field(
        default=0.0,
        metadata={"help": "dropout rate on encoder layers, embeddings and the readout (paper: 0)"},
    )
    window_updates: int = field(
        default=0,
        metadata={
            "help": "number of updates of pre-training, in which the attention's window moves only "
            "forward (paper: an epoch; 0 = none)"
        },
    )
    window: str = field(
        default=WINDOW,
        metadata={
            "help": "FIRST,SLOWEST,FASTEST: in pre-training, character number j (from 0) sees the "
            "encoded positions from SLOWEST * j to FIRST + FASTEST * j"
        },
    )
    input_feat_per_channel: int = field(
        default=80, metadata={"help": f"features: {BY_TASK}", **WRITTEN}
    )
    input_channels: int = field(default=1, metadata={"help": BY_TASK, **WRITTEN})
    speaker_to_id: Any = field(default=None, metadata={"help": BY_TASK, **WRITTEN})
    max_source_positions: int = II("task.max_source_positions")
    max_target_positions: int = II("task.max_target_positions")


def numbers(option: str, text: str, kind: Callable[[str], Number]) -> Tuple[Number, ...]:
    """Return the numbers of a list with commas. Raises ValueError naming the option."""
    try:
        return tuple(kind(word) for word in text.split(","))
    except ValueError:
        raise ValueError(f"{option} {text!r}: must be numbers with commas between them") from None


def size_of(cfg: TwinSpeechConfig) -> SpeechSize:
    """Return the ``SpeechSize`` of a ``TwinSpeechConfig``."""
    return SpeechSize(
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


def window_of(cfg: TwinSpeechConfig) -> Window:
    """Return the ``Window`` of a ``TwinSpeechConfig``. Raises ValueError naming the option."""
    limits = numbers("--window", cfg.window, float)
    # a window that is empty, or moves backwards, would leave steps without anything to see
    if len(limits) != 3 or limits[0] < 1 or not 0 <= limits[1] <= limits[2]:
        raise ValueError(
            f"--window {cfg.window!r}: must be FIRST,SLOWEST,FASTEST with FIRST from 1 and "
            "0 <= SLOWEST <= FASTEST"
        )
    if cfg.window_updates < 0:
        raise ValueError(f"--window-updates {cfg.window_updates}: must be at least 0")
    if cfg.window != WINDOW and cfg.window_updates == 0:
        # an option without effect is refused
        raise ValueError(
            f"--window {cfg.window}: is used in pre-training alone; give it with --window-updates"
        )
    return Window(*limits)


def unroll(decoder: SpeechDecoder, tokens: Tensor, condition: Condition) -> Output:
    """Return what a decoder gives, teacher-forced: (logits (B, T, V), extra), s (B, T, H).

    condition: h (B, S, 2G), padding (B, S) and the window or None.
    """
    annotations, padding, window = condition
    # True where a step may not look: outside of the window, and at padding
    masked = window.mask(padding, tokens.size(1)) if window else None
    readout, steps = decoder.unroll(tokens, annotations, padding, masked)
    return (decoder.logits(readout), {"attn": [steps.weights]}), steps.states


def unroll_backward(decoder: SpeechDecoder, tokens: Tensor, condition: Condition) -> Output:
    """Return the same for the backward network, which begins at the end of h."""
    annotations, padding, window = condition
    # the window moves from the end of the recording, where the backward network begins
    return unroll(decoder, tokens, (mirrored(annotations, padding), padding, window))


@register_model("twin_speech_lstm", dataclass=TwinSpeechConfig)
class TwinSpeechModel(FairseqEncoderDecoderModel):
    """Bidirectional LSTMs over frames, an attentive LSTM over characters.

    Args:
        encoder: frames -> h.
        decoder: around a ``SpeechDecoder``.
        window: of pre-training.
        window_updates: how many updates it lasts.
    """

    def __init__(
        self, encoder: FeatureSource, decoder: TargetSide, window: Window, window_updates: int = 0
    ):
        super().__init__(encoder, decoder)
        self.window, self.window_updates, self.num_updates = window, window_updates, 0

    @classmethod
    def build_model(cls, cfg: TwinSpeechConfig, task: FairseqTask) -> "TwinSpeechModel":
        """Return the model; ValueError, naming the option, for values out of range."""
        size, dictionary = size_of(cfg), task.target_dictionary
        # channels stand side by side in a frame
        encoder = SpeechEncoder(size, cfg.input_feat_per_channel * cfg.input_channels)
        decoder = SpeechDecoder(size, len(dictionary), dictionary.pad())
        return cls(
            FeatureSource(encoder, cfg.max_source_positions),
            TargetSide(decoder, dictionary, cfg.max_target_positions, need_attention=True),
            window_of(cfg),
            cfg.window_updates,
        )

    @classmethod
    def build_backward(cls, cfg: TwinSpeechConfig, task: FairseqTask) -> BackwardDecoder:
        """Return a second decoder, which reads h from its end."""
        size, dictionary = size_of(cfg), task.target_dictionary
        # no parameter is shared with the forward decoder (Sec. 2)
        decoder = SpeechDecoder(size, len(dictionary), dictionary.pad())
        return BackwardDecoder(decoder, size.hidden_size, unroll_backward)

    def set_num_updates(self, num_updates: int) -> None:
        """Count the updates, for the window; fairseq calls this after each."""
        super().set_num_updates(num_updates)
        # the length of pre-training is counted in updates, over restarts too
        self.num_updates = num_updates

    @property
    def pretraining_window(self) -> Optional[Window]:
        """Return the window, while it is used."""
        # in evaluation and after pre-training the attention sees the whole recording
        moving = self.training and self.num_updates < self.window_updates
        return self.window if moving else None

    def forward(
        self,
        src_tokens: Tensor,
        src_lengths: Tensor,
        prev_output_tokens: Tensor,
        twin: Optional[TwinCall] = None,
        **_unused: Any,
    ) -> Any:
        """Return logits (B, T, V), extra of frames (B, F, D) and characters (B, T).

        src_lengths: numbers of frames (B,). twin: see contract.py.
        """
        # once, for both decoders
        encoded = self.encoder(src_tokens, src_lengths)["encoded"][0]
        condition = (*encoded, self.pretraining_window)
        return decode(unroll, self.decoder.module, prev_output_tokens, condition, twin)


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
