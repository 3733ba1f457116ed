"""The decoding role of a component (modules.py), as common/transformer_steps.py computes its steps.

Dimensions: as in modules.py.
"""

from typing import TYPE_CHECKING, Iterable, Optional, cast

from torch import nn

from ...common.layers import Linear
from ...common.sentence_steps import Affine, first_positions, is_plain
from ...common.transformer import Positions
from ...common.transformer_steps import DecoderMaps, LayerMaps

if TYPE_CHECKING:  # modules.py imports this file
    from .modules import Block, Component

TYPES = (Linear, Positions, nn.Embedding, nn.Identity, nn.LayerNorm, nn.ModuleList)


def decoder_maps(component: "Component", steps: int, *types: type) -> Optional[DecoderMaps]:
    """Return what so many steps take, None where a module may compute something else.

    types: those of the component and its parts.
    """
    if not is_plain(component, (*types, *TYPES)):
        return None
    table = component.embedding.weight
    return DecoderMaps(
        embedding=table,
        scale=component.scale,
        positions=first_positions(component.positions, component.padding_index, steps, table),
        layers=[_layer_maps(block) for block in cast(Iterable["Block"], component.blocks)],
        heads=component.size.heads,
        norm_first=component.size.normalize_before,
        final_norm=component.final_norm,
        softmax=Affine(component.softmax_weight, None),
    )


def _layer_maps(block: "Block") -> LayerMaps:
    return LayerMaps(
        query_key_value=Affine.of(block.self_attention.qkv),
        output=Affine.of(block.self_attention.output),
        norm=block.self_attention_norm,
        query=Affine.of(block.context_attention.query),
        key_value=Affine.of(block.context_attention.key_value),
        context_output=Affine.of(block.context_attention.output),
        context_norm=block.context_attention_norm,
        enter=Affine.of(block.feed_forward_in),
        leave=Affine.of(block.feed_forward_out),
        feed_forward_norm=block.feed_forward_norm,
    )
