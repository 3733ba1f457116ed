"""``twin_caption_lstm`` and ``twin_caption_attention``, for the task ``image_captioning``.

The equations are in caption_modules.py; contract.py says what the criterion ``twin`` needs.
"""

from dataclasses import dataclass, field, fields

from fairseq.dataclass import FairseqDataclass
from fairseq.models import FairseqEncoderDecoderModel, register_model
from omegaconf import II

from ..common.architectures import architecture
from ..streams.direction import TargetSide
from .caption_modules import Annotations, AttentiveSize, CaptionDecoder, PlainDecoder, Size
from .contract import BackwardDecoder, decode
from .feature_source import FeatureSource


@dataclass
class TwinCaptionConfig(FairseqDataclass):
    feature_size: int = field(
        default=2048, metadata={"help": "D, width of the features (paper: 2048, of a ResNet)"}
    )
    embed_dim: int = field(default=512, metadata={"help": "E, width of embeddings of words"})
    hidden_size: int = field(
        default=512, metadata={"help": "H, LSTM units of each decoder (paper: 512)"}
    )
    dropout: float = field(
        default=0.5, metadata={"help": "on what the LSTM reads and what the softmax reads"}
    )
    max_target_positions: int = II("task.max_target_positions")


@dataclass
class TwinCaptionAttentionConfig(TwinCaptionConfig):
    attention_size: int = field(default=512, metadata={"help": "A, width of the attention"})


def run_plain(decoder: PlainDecoder, tokens, condition):
    """A decoder, teacher-forced: (logits (B, T, V), extra), h (B, T, H)."""
    readout, states = decoder.run(tokens, *condition)
    return (decoder.logits(readout), {"attn": [None]}), states


def run_attentive(decoder: CaptionDecoder, tokens, condition):
    """The same with attention."""
    readout, found = decoder.run(tokens, *condition)
    return (decoder.logits(readout), {"attn": [found.weights]}), found.states


@register_model("twin_caption_lstm", dataclass=TwinCaptionConfig)
class TwinCaptionModel(FairseqEncoderDecoderModel):
    """Show and Tell."""

    size, network, run = Size, PlainDecoder, staticmethod(run_plain)

    @classmethod
    def build_network(cls, cfg, task):
        """A decoder and its sizes."""
        size = cls.size(**{one.name: cfg[one.name] for one in fields(cls.size)})
        dictionary = task.target_dictionary
        return cls.network(size, len(dictionary), dictionary.pad()), size

    @classmethod
    def build_model(cls, cfg, task):
        decoder, size = cls.build_network(cfg, task)
        return cls(
            FeatureSource(Annotations(size.feature_size), None, None),
            TargetSide(decoder, task.target_dictionary, cfg.max_target_positions, True),
        )

    @classmethod
    def build_backward(cls, cfg, task) -> BackwardDecoder:
        decoder, size = cls.build_network(cfg, task)
        return BackwardDecoder(decoder, size.hidden_size, cls.run)

    def forward(self, src_tokens, src_lengths, prev_output_tokens, twin=None, **_unused):
        """Features (B, P, D), real positions (B,), words (B, T) -> logits (B, T, V), extra.

        twin: see contract.py.
        """
        condition = self.encoder(src_tokens, src_lengths)["encoded"][0]
        return decode(self.run, self.decoder.module, prev_output_tokens, condition, twin)


@register_model("twin_caption_attention", dataclass=TwinCaptionAttentionConfig)
class TwinCaptionAttentionModel(TwinCaptionModel):
    """Show, Attend and Tell, soft attention."""

    size, network, run = AttentiveSize, CaptionDecoder, staticmethod(run_attentive)


architecture("twin_caption_lstm", "twin_caption_lstm_tiny", embed_dim=64, hidden_size=96)
architecture(
    "twin_caption_attention",
    "twin_caption_attention_tiny",
    embed_dim=64,
    hidden_size=96,
    attention_size=64,
)
