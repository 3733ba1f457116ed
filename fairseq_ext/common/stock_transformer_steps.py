"""The steps of fairseq's own Transformer decoder, by transformer_steps.py.

Only the stock classes, and no option that changes what they compute.

Dimensions: R rows, S source positions, T steps, D model.
"""

from typing import Any, Dict, List, Optional, cast

from fairseq.models.transformer import TransformerDecoder, TransformerDecoderBase
from fairseq.modules import (
    FairseqDropout,
    LearnedPositionalEmbedding,
    MultiheadAttention,
    SinusoidalPositionalEmbedding,
)
from fairseq.modules.transformer_layer import TransformerDecoderLayer, TransformerDecoderLayerBase
from torch import Tensor, nn
from torch.nn import functional as F

from .sentence_steps import Affine, SentenceSteps, first_positions, is_plain
from .transformer_steps import DecoderMaps, LayerMaps, TransformerSteps

TYPES = (
    *(TransformerDecoder, TransformerDecoderBase),
    *(TransformerDecoderLayer, TransformerDecoderLayerBase, MultiheadAttention),
    *(LearnedPositionalEmbedding, SinusoidalPositionalEmbedding, FairseqDropout),
    *(nn.Embedding, nn.LayerNorm, nn.Linear, nn.ModuleList),
)
# what options add to a decoder and to its layers
OF_DECODER = ("adaptive_softmax", "layernorm_embedding", "project_in_dim", "project_out_dim")
OF_LAYER = ("attn_ln", "c_attn", "ffn_layernorm", "w_resid")


def transformer_steps(
    decoder: nn.Module, encoder_out: Dict[str, List[Tensor]], rows: int, steps: int
) -> Optional[SentenceSteps]:
    """Return the steps of a search for one sentence, None for another decoder.

    Args:
        decoder: of the model.
        encoder_out: of fairseq's encoder, for the sentence: (S, 1, D).
        rows: R.
        steps: T.
    """
    if not isinstance(decoder, TransformerDecoderBase) or not _is_stock(decoder):
        return None
    states, padding = encoder_out["encoder_out"], encoder_out["encoder_padding_mask"]
    if not states or (padding and padding[0].any()):
        return None
    maps = _decoder_maps(decoder, steps)
    return TransformerSteps(maps, states[0][:, 0], rows, need_attention=True)


def _is_stock(decoder: TransformerDecoderBase) -> bool:
    """True if the decoder is what fairseq's usual options make."""
    layers = cast(List[TransformerDecoderLayerBase], decoder.layers)
    return (
        is_plain(decoder, TYPES)
        and not decoder.cross_self_attention
        and all(getattr(decoder, name) is None for name in OF_DECODER)
        and decoder.output_projection.weight.size(1) == decoder.embed_dim
        # without layers, which fairseq allows, there is no attention either
        and len(layers) > 0
        and all(map(_is_stock_layer, layers))
    )


def _is_stock_layer(layer: TransformerDecoderLayerBase) -> bool:
    attentions = layer.self_attn, layer.encoder_attn
    return (
        layer.activation_fn is F.relu
        and all(getattr(layer, name) is None for name in OF_LAYER)
        and all(attention is not None and _is_usual(attention) for attention in attentions)
    )


def _is_usual(attention: MultiheadAttention) -> bool:
    return attention.bias_k is None and not attention.add_zero_attn and not attention.use_xformers


def _decoder_maps(decoder: TransformerDecoderBase, steps: int) -> DecoderMaps:
    layers = cast(Any, decoder.layers)
    weight = decoder.embed_tokens.weight
    positions = weight.new_zeros(steps, weight.size(1))
    if decoder.embed_positions is not None:
        layer: Any = decoder.embed_positions
        positions = first_positions(layer, decoder.padding_idx, steps, weight)
    return DecoderMaps(
        embedding=weight,
        scale=decoder.embed_scale,
        positions=positions,
        layers=[_layer_maps(layer) for layer in layers],
        heads=layers[0].nh,
        norm_first=layers[0].normalize_before,
        final_norm=decoder.layer_norm,
        softmax=Affine.of(decoder.output_projection),
    )


def _layer_maps(layer: Any) -> LayerMaps:
    attention, context = layer.self_attn, layer.encoder_attn
    return LayerMaps(
        query_key_value=Affine.of(attention.q_proj, attention.k_proj, attention.v_proj),
        output=Affine.of(attention.out_proj),
        norm=layer.self_attn_layer_norm,
        query=Affine.of(context.q_proj),
        key_value=Affine.of(context.k_proj, context.v_proj),
        context_output=Affine.of(context.out_proj),
        context_norm=layer.encoder_attn_layer_norm,
        enter=Affine.of(layer.fc1),
        leave=Affine.of(layer.fc2),
        feed_forward_norm=layer.final_layer_norm,
    )
