"""``twin_transformer``: fairseq's ``transformer`` with a twin.

Options, parameters and function are the stock model's. The state that predicts a token is what the
output layer reads. Dimensions: B sentences, T target positions, D model, V vocabulary.
"""

from argparse import Namespace
from typing import Any, Dict, List, Optional, Tuple

from fairseq.models import register_model, register_model_architecture
from fairseq.models.transformer import (
    TransformerDecoder,
    TransformerModel,
    base_architecture,
    transformer_iwslt_de_en,
    transformer_wmt_en_de,
    transformer_wmt_en_de_big,
)
from fairseq.tasks import FairseqTask
from torch import Tensor

from ...common.architectures import architecture, refuse_adaptive_softmax
from ..contract import BackwardDecoder, TwinCall, decode


def unroll(
    decoder: TransformerDecoder, tokens: Tensor, encoder_out: Dict[str, List[Tensor]]
) -> Tuple[Tuple[Tensor, Any], Tensor]:
    """Return (logits (B, T, V), extra) of a stock decoder, and its last states (B, T, D)."""
    # what the output layer reads, after the last layer norm
    states, extra = decoder.extract_features(tokens, encoder_out)
    return (decoder.output_layer(states), extra), states


@register_model("twin_transformer")
class TwinTransformerModel(TransformerModel):
    """``transformer`` for the criterion ``twin``."""

    @classmethod
    def build_model(cls, args: Namespace, task: FairseqTask) -> "TwinTransformerModel":
        """Return the stock model; ValueError for an adaptive softmax, which gives no logits."""
        refuse_adaptive_softmax(args)
        return super().build_model(args, task)

    @classmethod
    def build_backward(cls, args: Namespace, task: FairseqTask) -> BackwardDecoder:
        """Return a second decoder."""
        # a whole model, of which the encoder is dropped: only the decoder is doubled
        decoder = cls.build_model(args, task).decoder
        return BackwardDecoder(decoder, decoder.output_embed_dim, unroll)

    def forward(
        self,
        src_tokens: Tensor,
        src_lengths: Tensor,
        prev_output_tokens: Tensor,
        twin: Optional[TwinCall] = None,
        **more: Any,
    ) -> Any:
        """Return logits as the stock model's; see contract.py for ``twin``."""
        # without a twin the stock forward, which also knows alignments and layer outputs
        if twin is None:
            return super().forward(src_tokens, src_lengths, prev_output_tokens, **more)
        # encoded once: both networks attend to the same states
        encoder_out = self.encoder(src_tokens, src_lengths=src_lengths)
        return decode(unroll, self.decoder, prev_output_tokens, encoder_out, twin)


for _name, _defaults in {
    "twin_transformer": base_architecture,
    "twin_transformer_iwslt_de_en": transformer_iwslt_de_en,
    "twin_transformer_wmt_en_de": transformer_wmt_en_de,
    "twin_transformer_wmt_en_de_big": transformer_wmt_en_de_big,
}.items():
    register_model_architecture("twin_transformer", _name)(_defaults)
architecture(
    "twin_transformer",
    "twin_transformer_tiny",
    **{
        f"{side}_{name}": value
        for side in ("encoder", "decoder")
        for name, value in {"embed_dim": 64, "ffn_embed_dim": 128, "layers": 2}.items()
    },
    encoder_attention_heads=4,
    decoder_attention_heads=4,
)
