"""Names that plugins for fairseq 0.9 and 0.10 import from modules that no longer have them."""

from __future__ import annotations

import importlib

from ..patch_registry import PatchedModule, patch

# {module: {name in it: (module that has it now, its name there)}}
MOVED = {
    "fairseq.models.transformer": {
        "EncoderOut": ("fairseq.models.fairseq_encoder", "EncoderOut"),
        **{
            name: ("fairseq.modules", name)
            for name in (
                "AdaptiveSoftmax",
                "FairseqDropout",
                "LayerDropModuleList",
                "LayerNorm",
                "MultiheadAttention",
                "PositionalEmbedding",
                "SinusoidalPositionalEmbedding",
                "TransformerDecoderLayer",
                "TransformerEncoderLayer",
            )
        },
    },
    "fairseq.binarizer": {"safe_readline": ("fairseq.file_chunker_utils", "_safe_readline")},
    "fairseq.data.data_utils": {
        "process_bpe_symbol": ("fairseq.data.data_utils", "post_process"),
    },
    "fairseq.utils": {"with_torch_seed": ("fairseq.utils", "set_torch_seed")},
}


@patch(
    *MOVED,
    because="fairseq 0.12.2: imports of plugins for fairseq 0.9 and 0.10 fail, such as "
    "TransformerEncoderLayer and EncoderOut of fairseq.models.transformer",
)
def moved_names_are_there(module: PatchedModule) -> None:
    """Give a module the names of MOVED that it had once and lacks now."""
    for name, (place, present) in MOVED[module.__name__].items():
        if not hasattr(module, name):
            setattr(module, name, getattr(importlib.import_module(place), present))
