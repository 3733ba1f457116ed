"""--mha-heads-to-keep and --ffn-blocks-to-remove: models that were pruned are loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..patch_registry import PatchedModule, patch
from ..surrounded_calls import call_after

if TYPE_CHECKING:
    from fairseq.models.roberta import RobertaModel
    from fairseq.modules.transformer_layer import TransformerEncoderLayerBase


@patch(
    "fairseq.models.roberta.model",
    because="fairseq 0.12.2: RoBERTa with --mha-heads-to-keep or --ffn-blocks-to-remove is pruned "
    "by a training that begins alone: its checkpoints can be loaded by no other command",
)
def pruned_models_are_loaded(module: PatchedModule) -> None:
    """Give the layers the sizes that they have in the checkpoint, before it is loaded."""

    def prune(self: RobertaModel, state_dict: dict[str, Any], name: str) -> None:
        options = ("mha_heads_to_keep", "ffn_blocks_to_remove")
        if all(getattr(self.args, option, -1) in (-1, None) for option in options):
            return
        prefix = f"{name}." if name else ""
        for number, layer in enumerate(self.encoder.sentence_encoder.layers):
            prune_as_stored(layer, state_dict, f"{prefix}encoder.sentence_encoder.layers.{number}.")

    call_after(module.RobertaModel, "upgrade_state_dict_named", prune)


def prune_as_stored(
    layer: TransformerEncoderLayerBase, state_dict: dict[str, Any], prefix: str
) -> None:
    """Take heads and units away until there are as many as in the state; which does not matter."""
    attention: Any = layer.self_attn
    queries = state_dict.get(f"{prefix}self_attn.q_proj.weight")  # (D', D)
    heads = 0 if queries is None else queries.size(0) // attention.head_dim
    if 0 < heads < attention.num_heads:
        size = attention.head_dim
        attention._adaptive_prune_heads(
            [(head * size, head * size + size) for head in range(heads)]
        )
        attention._set_skip_embed_dim_check()
    units = state_dict.get(f"{prefix}fc1.weight")  # (U', D)
    removed = 0 if units is None else layer.fc1.out_features - units.size(0)
    if removed > 0:
        layer._prune_fc_layer(remove_index=list(range(removed)))
