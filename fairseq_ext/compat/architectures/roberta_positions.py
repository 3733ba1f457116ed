"""roberta_enc_dec: how many positions it has without a pretrained RoBERTa."""

from __future__ import annotations

import functools
from typing import Any

from ..patch_registry import PatchedModule, patch


@patch(
    "fairseq.models.roberta.enc_dec",
    because="fairseq 0.12.2: roberta_enc_dec without --pretrained-mlm-checkpoint takes the pair of "
    "limits of a translation task for its number of positions, and ends in a TypeError",
)
def roberta_has_one_limit(module: PatchedModule) -> None:
    """Give RoBERTa the larger limit of the two sides."""
    stock = module.RobertaEncDecModel.build_model.__func__

    @functools.wraps(stock)
    def build_model(cls: Any, args: Any, task: Any) -> Any:
        limits = task.max_positions()
        if isinstance(limits, tuple) and getattr(args, "max_positions", None) is None:
            args.max_positions = max(limits)
        return stock(cls, args, task)

    module.RobertaEncDecModel.build_model = classmethod(build_model)
