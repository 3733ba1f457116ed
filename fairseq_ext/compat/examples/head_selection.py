"""The example attention_head_selection: its task."""

from __future__ import annotations

import copy
import functools
from typing import TYPE_CHECKING, Any

from ..imported_examples import modules_of_examples
from ..patch_registry import PatchedModule, patch
from ..surrounded_calls import call_before
from ..user_errors import OptionError

if TYPE_CHECKING:
    from torch import Tensor


@patch(
    *modules_of_examples("attention_head_selection.src.speech_to_text_head_selection"),
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


@patch(
    *modules_of_examples("attention_head_selection.src.modules.attn_head_selector"),
    because="fairseq 0.12.2: in validation and at each word of a translation, other heads are "
    "drawn, so that a translation depends on the batch",
)
def probable_heads_are_selected(module: PatchedModule) -> None:
    """In evaluation, select the heads with the highest logits, and draw none."""
    selector = module.AttnHeadSelector
    stock = selector.gumbel_sample

    @functools.wraps(stock)
    def gumbel_sample(self: Any, logits: Tensor, tau: float = 1.0) -> Tensor:
        return stock(self, logits, tau) if self.training else (logits / tau).sigmoid()

    selector.gumbel_sample = gumbel_sample


@patch(
    *modules_of_examples("attention_head_selection.src.speech_to_text_head_selection"),
    because="fairseq 0.12.2: a batch of several languages or domains is translated with the heads "
    "of its first sentence",
)
def batches_have_the_heads_of_one_task(module: PatchedModule) -> None:
    """Refuse to translate several languages or domains at once, as in `--gen-subset a,b`."""
    task = module.SpeechToTextHeadSelectionTask

    def check_batch(
        self: Any, generator: Any, models: Any, sample: Any, *more: Any, **kwargs: Any
    ) -> None:
        sides = ("domain",) if self.task_type == "domain" else ("src_lang", "tgt_lang")
        for side in sides:
            if len(sample[f"{side}_ids"].unique()) > 1:
                raise OptionError(
                    "--gen-subset with splits of several languages or domains is not allowed; "
                    "allowed: a split with the heads of one of them, as in test_en_de_talks"
                )

    call_before(task, "inference_step", check_batch)
