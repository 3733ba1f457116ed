"""The example latent_depth: layers that are selected by learnt logits."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from ..imported_examples import modules_of_examples
from ..patch_registry import PatchedModule, patch
from ..surrounded_calls import call_after
from ..user_errors import OptionError

if TYPE_CHECKING:
    from torch import Tensor

FOLDER = "latent_depth.latent_depth_src"


@patch(
    *modules_of_examples(f"{FOLDER}.modules.latent_layers"),
    because="fairseq 0.12.2: the logits of the layers begin as whatever the memory holds, which "
    "may be NaN and differs between runs of one seed",
)
def layers_begin_with_equal_chances(module: PatchedModule) -> None:
    """Begin with logits of zero: each layer is selected with probability 1/2, the uniform prior."""
    import torch

    def begin_with_zeros(self: Any, *args: Any, **kwargs: Any) -> None:
        torch.nn.init.zeros_(self.layer_logits)

    call_after(module.LayerSelect, "__init__", begin_with_zeros)


@patch(
    *modules_of_examples(f"{FOLDER}.modules.latent_layers"),
    because="fairseq 0.12.2: in validation and at each word of a translation, other layers are "
    "drawn, so that a translation depends on the batch; the hard selection of training ignores "
    "--soft-select",
)
def probable_layers_are_selected(module: PatchedModule) -> None:
    """In evaluation, select the layers with a probability of at least 1/2, and draw none."""
    select = module.LayerSelect

    def begin(self: Any, *args: Any, **kwargs: Any) -> None:
        self.soft_select = not self.hard_select
        self.noises = [None] * len(self.layer_samples)  # (L,) of each language's last sample

    def sample(self: Any, logit_idx: int) -> None:
        logits = self.layer_logits[logit_idx]  # (L,)
        if not self.training:
            soft = (logits / self.tau).sigmoid()
            is_soft = self.soft_select or not self.hard_select
            self.samples = soft if is_soft else (logits >= 0).type_as(logits)
            return
        self.noises[logit_idx] = logistic_noise(logits)
        self.samples = self.layer_samples[logit_idx] = selection(self, logit_idx)

    def redraw(self: Any) -> list[Any]:
        """The last samples of all languages that had one, each (L,), with a graph of their own."""
        drawn = [index for index, noise in enumerate(self.noises) if noise is not None]
        return [selection(self, index) for index in drawn]

    call_after(select, "__init__", begin)
    select.sample, select.redraw = sample, redraw


def logistic_noise(logits: Tensor) -> Tensor:
    """Return the difference of two draws of Gumbel(0, 1) for each logit."""
    import torch

    first, second = (-torch.empty_like(logits).exponential_().log() for _ in range(2))
    return first - second


def selection(select: Any, index: int) -> Tensor:
    """Return the Gumbel-Sigmoid sample (L,) of a language that its noise leads to.

    s = sigmoid((logits + noise) / tau); a hard sample is 1 where s > 1/2, else 0, with the
    gradient of s.
    """
    logits = select.layer_logits[index]
    if select.detach_grad:
        logits = logits.detach()
    soft = ((logits + select.noises[index]) / select.tau).sigmoid()
    if select.soft_select or not select.hard_select:
        return soft
    return (soft > 0.5).type_as(soft) - soft.detach() + soft


@patch(
    *modules_of_examples(f"{FOLDER}.multilingual_translation_latent_depth"),
    because="fairseq 0.12.2: the README of latent_depth names an --arch without latent layers, "
    "which ends in an AttributeError; --lang-pairs in another order than in training takes the "
    "layers of other languages",
)
def architectures_have_latent_layers(module: PatchedModule) -> None:
    """Refuse an --arch that has no latent layers, and number the languages as in training."""
    task = module.MultilingualTranslationTaskLatentDepth
    stock = task.build_model

    @functools.wraps(stock)
    def build_model(self: Any, args: Any, from_checkpoint: bool = False) -> Any:
        model = stock(self, args, from_checkpoint)
        check_latent_layers(self, model, args.arch)
        # the order of the model's options, which is that of its logits
        self.src_langs, self.tgt_langs = zip(*(pair.split("-") for pair in args.lang_pairs))
        return model

    task.build_model = build_model


def check_latent_layers(task: Any, model: Any, arch: str) -> None:
    """Raise OptionError if a side that the task wants to be latent has no latent layers."""
    for side in ("encoder", "decoder"):
        if not getattr(task, f"{side}_latent_layer"):
            continue
        coders = [getattr(part, side) for part in model.models.values()]
        if not all(hasattr(coder, "layer_select") for coder in coders):
            raise OptionError(
                f"--{side}-latent-layer is not allowed with --arch {arch}; "
                "allowed: latent_multilingual_transformer"
            )
