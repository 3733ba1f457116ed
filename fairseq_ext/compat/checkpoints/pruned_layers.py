"""--encoder-layers-to-keep and --decoder-layers-to-keep."""

from __future__ import annotations

import functools
import re
from typing import Any, Optional

from ..patch_registry import PatchedModule, patch


@patch(
    "fairseq.checkpoint_utils",
    because="fairseq 0.12.2: with --encoder-layers-to-keep alone a checkpoint loses all layers of "
    "the decoder, and with --decoder-layers-to-keep all of the encoder: it cannot be loaded. A "
    "training with either cannot be resumed: its checkpoints are pruned once more",
)
def layers_of_the_other_side_remain(module: PatchedModule) -> None:
    """Prune the layers of the sides that are named, unless they are; all others stay."""
    stock = module.prune_state_dict
    is_layer = re.compile(r"\.layers\.(\d+)\.")

    def is_pruned(state_dict: dict[str, Any], side: str, to_keep: str) -> bool:
        """True if a side has as many layers as are to be kept: of all layers they are all."""
        matches = [is_layer.search(name) for name in state_dict if name.startswith(side)]
        return len({match[1] for match in matches if match}) == len(to_keep.split(","))

    @functools.wraps(stock)
    def prune_state_dict(state_dict: dict[str, Any], model_cfg: Any) -> dict[str, Any]:
        to_keep = {
            side: getattr(model_cfg, f"{side}_layers_to_keep", None)
            for side in ("encoder", "decoder")
        }
        sides = [
            side
            for side, numbers in to_keep.items()
            if numbers and not is_pruned(state_dict, side, numbers)
        ]
        if not sides:
            return state_dict
        others = {
            name: value
            for name, value in state_dict.items()
            if is_layer.search(name) and not name.startswith(tuple(sides))
        }
        rest = {name: value for name, value in state_dict.items() if name not in others}
        return {**stock(rest, model_cfg), **others}

    module.prune_state_dict = prune_state_dict


@patch(
    "fairseq.models.transformer.transformer_config",
    because="fairseq 0.12.2 reads --encoder-layers-to-keep 0,2 as a list, where every model "
    "expects the text: a training ends in AttributeError",
)
def layers_are_named_by_text(module: PatchedModule) -> None:
    """Declare the option as text, as for language models."""
    config = module.EncDecBaseConfig
    # configurations that inherit it share the field
    config.__dataclass_fields__["layers_to_keep"].type = Optional[str]
    config.__annotations__["layers_to_keep"] = Optional[str]
