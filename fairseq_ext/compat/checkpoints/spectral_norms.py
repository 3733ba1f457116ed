"""--spectral-norm-classification-head: checkpoints with it are loaded."""

from __future__ import annotations

import functools
import re
from typing import Any

from ..patch_registry import PatchedModule, patch


@patch(
    "fairseq.models.bart.model",
    "fairseq.models.roberta.model",
    because="fairseq 0.12.2: checkpoints of RoBERTa and BART that were trained with "
    "--spectral-norm-classification-head cannot be loaded: KeyError 'out_proj.weight'",
)
def normalised_heads_are_loaded(module: PatchedModule) -> None:
    """Show the number of classes of such a head while fairseq looks for it.

    It reads the number from the weight, which torch computes from `weight_orig` and does not store.
    """
    class_name = "BARTModel" if hasattr(module, "BARTModel") else "RobertaModel"
    model = getattr(module, class_name)
    stock = model.upgrade_state_dict_named
    normalised = re.compile(r"(?:.*\.)?classification_heads\.[^.]+\.out_proj\.weight_orig")

    @functools.wraps(stock)
    def upgrade_state_dict_named(self: Any, state_dict: dict[str, Any], name: str) -> None:
        weights = [key.removesuffix("_orig") for key in state_dict if normalised.fullmatch(key)]
        shown = [weight for weight in weights if weight not in state_dict]
        state_dict.update({weight: state_dict[f"{weight}_orig"] for weight in shown})
        stock(self, state_dict, name)
        for weight in shown:
            state_dict.pop(weight, None)  # fairseq removes the heads that the model lacks

    model.upgrade_state_dict_named = upgrade_state_dict_named
