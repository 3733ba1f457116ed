"""The example latent_depth: the losses of the prior, and of the number of layers."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Sequence

from ..imported_examples import modules_of_examples
from ..patch_registry import PatchedModule, patch
from ..user_errors import OptionError
from .latent_layers import FOLDER

if TYPE_CHECKING:
    from torch import Tensor

PRIORS = ("uniform", "agged_posterior")


@patch(
    *modules_of_examples(f"{FOLDER}.loss.latent_depth"),
    because="fairseq 0.12.2: before --soft-update the weight of the KL loss is negative; the loss "
    "of --target-layers has the weight --share-weight, squared while it is annealed; "
    "--share-weight has no effect without --target-layers",
)
def losses_have_their_weights(module: PatchedModule) -> None:
    """Begin the KL loss with weight 0, and weigh the number of layers by --sparsity-weight."""
    kl, sparsity = module.LatentLayersKLLoss, module.LatentLayersSparsityLoss
    stock = kl.forward

    @functools.wraps(stock)
    def forward(
        self: Any, layer_samples: list[Any], lang_idx: int, update_num: int, sample_size: Any
    ) -> Tensor:
        # a language that is the source or target of several pairs leaves entries without a sample
        drawn = [index for index, sample in enumerate(layer_samples) if sample is not None]
        samples = [layer_samples[index] for index in drawn]
        update_num = max(update_num, self.args.soft_update)
        return stock(self, samples, drawn.index(lang_idx), update_num, sample_size)

    def is_valid(self: Any, update_num: int) -> bool:
        has_loss = self.args.target_layers > 0 or self.args.share_weight > 0
        return has_loss and update_num > self.args.soft_update + self.args.anneal_updates

    def number_of_layers(
        self: Any, layer_samples_list: Sequence[Tensor], update_num: int, sample_size: Any
    ) -> Tensor:
        progress = update_num - self.args.soft_update - self.args.anneal_updates
        share = min(1.0, progress / self.args.anneal_updates)
        return share * sample_size * depth_loss(layer_samples_list, self.args)

    kl.forward = forward
    sparsity.is_valid, sparsity.forward = is_valid, number_of_layers


def depth_loss(samples: Sequence[Tensor], args: Any) -> Tensor:
    """Return the loss of the layers that the languages use, before it is annealed.

    share_weight * sum_l -v_l log v_l + sparsity_weight * (sum_l v_l - target_layers)^2, where v_l
    is the mean of the samples of layer l. A term whose option is not positive is left out.

    Args:
        samples: of each language, (L,) in [0, 1].
        args: share_weight, sparsity_weight, target_layers.
    """
    import torch

    use = torch.stack(list(samples)).mean(dim=0)  # (L,)
    loss = use.new_zeros(())
    if args.share_weight > 0:
        tiny = torch.finfo(use.dtype).tiny  # 0 log 0 = 0, with a finite gradient
        loss = loss - args.share_weight * (use * use.clamp(min=tiny).log()).sum()
    if args.target_layers > 0:
        loss = loss + args.sparsity_weight * (use.sum() - args.target_layers) ** 2
    return loss


@patch(
    *modules_of_examples(f"{FOLDER}.multilingual_translation_latent_depth"),
    because="fairseq 0.12.2: with the loss of the number of layers, gradients pass the optimizer "
    "by, which scales those of --fp16; the loss fails with a language in several pairs",
)
def depth_loss_uses_the_optimizer(module: PatchedModule) -> None:
    """Add the loss of the number of layers after the others, from samples drawn once more."""
    task = module.MultilingualTranslationTaskLatentDepth
    stock, stock_step = task.__init__, task.train_step

    @functools.wraps(stock)
    def __init__(self: Any, args: Any, dicts: Any, training: bool) -> None:
        stock(self, args, dicts, training)
        # under another name: with the stock one, the step of a pair keeps its graph for it
        self.depth_loss = vars(self).pop("sparsity_loss", None)
        if self.depth_loss is not None:
            check_options(self, args)

    @functools.wraps(stock_step)
    def train_step(
        self: Any,
        sample: Any,
        model: Any,
        criterion: Any,
        optimizer: Any,
        update_num: int,
        ignore_grad: bool = False,
    ) -> Any:
        answer = stock_step(self, sample, model, criterion, optimizer, update_num, ignore_grad)
        if self.depth_loss is not None and self.depth_loss.is_valid(update_num):
            first = next(iter(model.models.values()))
            losses = [
                self.depth_loss(getattr(first, side).layer_select.redraw(), update_num, answer[1])
                for side in ("encoder", "decoder")
                if getattr(self, f"{side}_latent_layer")
            ]
            optimizer.backward(sum(losses) * (0 if ignore_grad else 1))
        return answer

    task.__init__, task.train_step = __init__, train_step


def check_options(task: Any, args: Any) -> None:
    """Raise OptionError if a loss of the layers cannot be computed with the options."""
    if args.anneal_updates < 1:
        raise OptionError(f"--anneal-updates {args.anneal_updates} is not allowed; allowed: from 1")
    if args.prior not in PRIORS:
        raise OptionError(f"--prior {args.prior} is not allowed; allowed: {', '.join(PRIORS)}")
    for side, languages in (("encoder", task.src_langs), ("decoder", task.tgt_langs)):
        is_latent = getattr(task, f"{side}_latent_layer")
        if is_latent and args.prior != PRIORS[0] and len(set(languages)) < len(languages):
            raise OptionError(
                f"--prior {args.prior} is not allowed with --{side}-latent-layer and --lang-pairs "
                f"{','.join(args.lang_pairs)}, in which a language has this side of several pairs; "
                f"allowed: {PRIORS[0]}"
            )
