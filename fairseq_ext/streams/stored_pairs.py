"""The pairs that a model's configuration names in a checkpoint.

A run tells its models the pairs by ``task.pairs`` and lets the checkpoints hold them; what reads a
checkpoint asks here.
"""

from typing import Any, List

from ..common.run_config import carry_in_checkpoints
from ..compat.checkpoints.configurations import options_of
from .lang_pairs import parse_lang_pairs


def stored_pairs(cfg: Any) -> List[str]:
    """Return the pairs of a checkpoint's model; none for a model of one direction.

    Args:
        cfg: the configuration of the model, as attributes or as a mapping.
    """
    text = options_of(cfg).get("lang_pairs")
    if not text:
        return []
    # fairseq's multilingual_translation has split them already
    return parse_lang_pairs(text if isinstance(text, str) else ",".join(text))


def store_pairs(cfg: Any, pairs: List[str]) -> None:
    """Let the checkpoints of the run hold the pairs in the model's configuration ``cfg``."""
    carry_in_checkpoints(cfg, "model", {"lang_pairs": ",".join(pairs)})
