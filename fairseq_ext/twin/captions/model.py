"""``twin_caption_lstm`` and ``twin_caption_attention``, for the task ``image_captioning``.

The equations are in modules.py; contract.py says what the criterion ``twin`` needs.
"""

from dataclasses import dataclass, field, fields
from typing import Any, Callable, Optional, Tuple, Type

from fairseq.dataclass import FairseqDataclass
from fairseq.models import FairseqEncoderDecoderModel, register_model
from fairseq.tasks import FairseqTask
from omegaconf import II
from torch import Tensor, nn

from ...common.architectures import architecture
from ...streams.direction import TargetSide
from ..attentive.feature_source import FeatureSource
from ..contract import BackwardDecoder, TwinCall, decode
from .modules import Annotations, AttentiveSize, CaptionDecoder, CaptionSize, PlainDecoder

# features (B, P, D) and padding (B, P)
Condition = Tuple[Tensor, Tensor]
Output = Tuple[Tuple[Tensor, Any], Tensor]


@dataclass
class TwinCaptionConfig(FairseqDataclass):
    """Options of ``twin_caption_lstm``; lengths are in words."""

    feature_size: int = field(
        default=2048, metadata={"help": "D, width of the features (paper: 2048, of a ResNet)"}
    )
    embed_dim: int = field(default=512, metadata={"help": "E, width of word embeddings"})
    hidden_size: int = field(
        default=512, metadata={"help": "H, number of LSTM units of each decoder (paper: 512)"}
    )
    dropout: float = field(
        default=0.5, metadata={"help": "dropout rate on the inputs of the LSTM and of the softmax"}
    )
    max_target_positions: int = II("task.max_target_positions")


@dataclass
class TwinCaptionAttentionConfig(TwinCaptionConfig):
    """Options of ``twin_caption_attention``: those of ``twin_caption_lstm``, and A."""

    attention_size: int = field(default=512, metadata={"help": "A, width of the attention"})


def unroll_plain(decoder: PlainDecoder, tokens: Tensor, condition: Condition) -> Output:
    """Return what a decoder gives, teacher-forced: (logits (B, T, V), extra), h (B, T, H)."""
    readout, states = decoder.unroll(tokens, *condition)
    return (decoder.logits(readout), {"attn": [None]}), states


def unroll_attentive(decoder: CaptionDecoder, tokens: Tensor, condition: Condition) -> Output:
    """Return what ``unroll_plain`` does, of a decoder with attention over regions."""
    readout, steps = decoder.unroll(tokens, *condition)
    return (decoder.logits(readout), {"attn": [steps.weights]}), steps.states


@register_model("twin_caption_lstm", dataclass=TwinCaptionConfig)
class TwinCaptionModel(FairseqEncoderDecoderModel):
    """Show and Tell."""

    size: Type[CaptionSize] = CaptionSize
    network: Callable[..., nn.Module] = PlainDecoder
    unroll = staticmethod(unroll_plain)

    @classmethod
    def build_network(cls, cfg: Any, task: FairseqTask) -> Tuple[nn.Module, CaptionSize]:
        """Return a decoder and its sizes."""
        # the fields of the size are options of the same names
        size = cls.size(**{entry.name: cfg[entry.name] for entry in fields(cls.size)})
        dictionary = task.target_dictionary
        return cls.network(size, len(dictionary), dictionary.pad()), size

    @classmethod
    def build_model(cls, cfg: Any, task: FairseqTask) -> "TwinCaptionModel":
        """Return the model; ValueError, naming the option, for values out of range."""
        decoder, size = cls.build_network(cfg, task)
        return cls(
            # images have no limit of positions
            FeatureSource(Annotations(size.feature_size), max_positions=None),
            TargetSide(decoder, task.target_dictionary, cfg.max_target_positions, True),
        )

    @classmethod
    def build_backward(cls, cfg: Any, task: FairseqTask) -> BackwardDecoder:
        """Return a second decoder."""
        decoder, size = cls.build_network(cfg, task)
        return BackwardDecoder(decoder, size.hidden_size, cls.unroll)

    def forward(
        self,
        src_tokens: Tensor,
        src_lengths: Tensor,
        prev_output_tokens: Tensor,
        twin: Optional[TwinCall] = None,
        **_unused: Any,
    ) -> Any:
        """Return logits (B, T, V), extra of features (B, P, D) and words (B, T).

        src_lengths: numbers of real positions (B,). twin: see contract.py.
        """
        # features and padding: the encoder leaves the features as they are
        condition = self.encoder(src_tokens, src_lengths)["encoded"][0]
        return decode(self.unroll, self.decoder.module, prev_output_tokens, condition, twin)


@register_model("twin_caption_attention", dataclass=TwinCaptionAttentionConfig)
class TwinCaptionAttentionModel(TwinCaptionModel):
    """Show, Attend and Tell, soft attention."""

    size = AttentiveSize
    network = CaptionDecoder
    unroll = staticmethod(unroll_attentive)  # type: ignore[assignment]  # of another decoder


architecture("twin_caption_lstm", "twin_caption_lstm_tiny", embed_dim=64, hidden_size=96)
architecture(
    "twin_caption_attention",
    "twin_caption_attention_tiny",
    embed_dim=64,
    hidden_size=96,
    attention_size=64,
)
