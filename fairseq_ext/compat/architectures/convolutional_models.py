"""Options of fconv, fconv_lm and lightconv that end in an error without a name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..patch_registry import PatchedModule, patch
from ..surrounded_calls import call_after, call_before
from ..user_errors import OptionError, option_of

if TYPE_CHECKING:
    from fairseq.models import BaseFairseqModel

SIDES = ("encoder", "decoder")
# what lightconv_lm has by default, and lightconv reads and does not declare
OF_CLUSTERS = {
    "tie_adaptive_weights": False,
    "tie_adaptive_proj": False,
    "adaptive_softmax_factor": 4,
}


@patch(
    "fairseq.models.lightconv",
    because="fairseq 0.12.2: encoders of lightconv with an even kernel end in a TypeError",
)
def even_kernels_are_padded(module: PatchedModule) -> None:
    """Tell the convolution how many zeros are before a sentence; it counts the others itself."""
    layer = module.LightConvEncoderLayer

    def pad_before(self: Any, *args: Any, **kw: Any) -> None:
        padding = self.conv.padding_l
        if isinstance(padding, tuple):
            self.conv.padding_l = padding[0]

    call_after(layer, "__init__", pad_before)


@patch(
    "fairseq.models.lightconv",
    because="fairseq 0.12.2: lightconv with --adaptive-softmax-cutoff, or with sides of different "
    "width, ends in an error without the name of an option",
)
def lightconv_has_clusters(module: PatchedModule) -> None:
    """Add the options that the softmax reads; refuse widths that differ."""
    stock = module.LightConvModel.build_model

    def build_model(cls: type[BaseFairseqModel], args: Any, task: Any) -> Any:
        for name, value in OF_CLUSTERS.items():
            setattr(args, name, getattr(args, name, value))
        source, target = (getattr(args, f"{side}_embed_dim", None) for side in SIDES)
        if source is not None and target is not None and source != target:
            raise OptionError(
                f"{option_of('decoder_embed_dim', target)} with "
                f"{option_of('encoder_embed_dim', source)}: both sides of lightconv have one "
                f"width; allowed: {source}"
            )
        return stock.__func__(cls, args, task)

    module.LightConvModel.build_model = classmethod(build_model)


@patch(
    "fairseq.models.fconv",
    because="fairseq 0.12.2: fconv without attention ends in a ZeroDivisionError",
)
def decoders_read_the_source(module: PatchedModule) -> None:
    """Refuse a decoder that nowhere attends to its source."""

    def check_attention(self: Any, encoder: Any, decoder: Any) -> None:
        if all(layer is None for layer in decoder.attention):
            raise OptionError(
                "--decoder-attention: no layer attends to the source; allowed: True, or a list "
                "with True for one layer at least"
            )

    call_before(module.FConvModel, "__init__", check_attention)


@patch(
    "fairseq.models.fconv_lm",
    because="fairseq 0.12.2: fconv_lm with --decoder-attention ends in an UnboundLocalError",
)
def language_models_have_no_source(module: PatchedModule) -> None:
    """Refuse attention to a source."""

    def check_attention(self: Any, decoder: Any) -> None:
        if any(layer is not None for layer in decoder.attention):
            raise OptionError(
                "--decoder-attention: fconv_lm has no source to attend to; allowed: False"
            )

    call_before(module.FConvLanguageModel, "__init__", check_attention)
