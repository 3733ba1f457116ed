"""Options of a Transformer's layers that fairseq's TransformerConfig does not declare."""

from __future__ import annotations

import functools
from argparse import Namespace
from typing import Any

from ..patch_registry import PatchedModule, patch
from ..plain_options import plain_options


@patch(
    "fairseq.models.transformer.transformer_config",
    because="fairseq 0.12.2: of the options of a dataclass, the layers of a Transformer read those "
    "that TransformerConfig has too: --scale-attn, --scale-fc, --scale-heads and --scale-resids of "
    "transformer_lm change nothing",
)
def layers_read_all_options(module: PatchedModule) -> None:
    """Give the layers the other options too, as they have them of a namespace."""
    from omegaconf import OmegaConf

    stock = module.TransformerConfig.from_namespace.__func__

    @functools.wraps(stock)
    def from_namespace(cls: Any, args: Any) -> Any:
        if OmegaConf.is_dict(args):
            args = Namespace(**plain_options(args))
        return stock(cls, args)

    module.TransformerConfig.from_namespace = classmethod(from_namespace)
