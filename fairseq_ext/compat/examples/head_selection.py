"""The example attention_head_selection: its task."""

from __future__ import annotations

import copy
import functools
from typing import Any

from ..patch_registry import PatchedModule, patch
from ..user_errors import OptionError
from .user_dirs import modules_of_example


@patch(
    *modules_of_example("attention_head_selection.src.speech_to_text_head_selection"),
    because="fairseq 0.12.2: fairseq-generate with the task speech_to_text_head_selection lacks "
    "options of the model and ends in an AttributeError; in training, the priors of encoder and "
    "decoder are exchanged, and --dec-enc-attn-head-select fails with a padded source",
)
def head_selection_translates(module: PatchedModule) -> None:
    """Set up the task without options of the model, with the prior of each side."""
    task = module.SpeechToTextHeadSelectionTask
    build, stock = task.build_model, task.__init__

    @functools.wraps(build)
    def build_model(self: Any, args: Any, from_checkpoint: bool = False) -> Any:
        if getattr(args, "dec_enc_attn_head_select", False):
            raise OptionError(
                "--dec-enc-attn-head-select is not allowed: this attention of fairseq 0.12.2 "
                "fails with sentences of several lengths; allowed: --encoder-attn-head-select, "
                "--decoder-self-attn-head-select"
            )
        return build(self, args)

    @functools.wraps(stock)
    def __init__(self: Any, args: Any, *more: Any, **kwargs: Any) -> None:
        complete = copy.copy(args)
        priors = {}
        for side in ("encoder", "decoder"):
            for name in (f"{side}_attention_heads", f"total_{side}_attention_heads"):
                if not hasattr(complete, name):  # in fairseq-generate, which uses no prior
                    setattr(complete, name, 1)
            heads = float(getattr(complete, f"{side}_attention_heads"))
            priors[f"{side}_head_prior"] = heads / getattr(
                complete, f"total_{side}_attention_heads"
            )
        stock(self, complete, *more, **kwargs)
        vars(self).update(priors, args=args, cfg=args)

    task.build_model = build_model
    task.__init__ = __init__
