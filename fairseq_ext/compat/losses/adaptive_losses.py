"""The loss of models with an adaptive softmax, --criterion adaptive_loss alone."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from ..patch_registry import PatchedModule, patch
from ..surrounded_calls import call_before

if TYPE_CHECKING:
    from fairseq.criterions.adaptive_loss import AdaptiveLoss
    from fairseq.models import BaseFairseqModel
    from torch import Tensor

# {module of fairseq: its criterion, which is to train no adaptive softmax}
CRITERIA = {
    "fairseq.criterions.cross_entropy": "CrossEntropyCriterion",
    "fairseq.criterions.label_smoothed_cross_entropy": "LabelSmoothedCrossEntropyCriterion",
}
# {module of fairseq: its layer with clusters of words, and the option of their sizes}
LAYERS = {
    "fairseq.modules.adaptive_softmax": ("AdaptiveSoftmax", "--adaptive-softmax-cutoff"),
    "fairseq.modules.adaptive_input": ("AdaptiveInput", "--adaptive-input-cutoff"),
}
NO_WORD = -100  # in place of padding: no word of the dictionary or of a cluster has this number


@patch(
    "fairseq.criterions.adaptive_loss",
    because="fairseq 0.12.2: adaptive_loss takes the second word of every cluster behind the first "
    "for padding: loss and perplexity lack it, and it is not learnt; sums are in 16 bits with "
    "--fp16 and --bf16; with reduce=False the criterion fails",
)
def words_of_clusters_are_no_padding(module: PatchedModule) -> None:
    """Ignore padding by a number of its own; words are counted anew in each cluster, from 0."""
    import torch

    def forward(
        self: AdaptiveLoss, model: BaseFairseqModel, sample: dict[str, Any], reduce: bool = True
    ) -> tuple[Tensor, int, dict[str, Any]]:
        """Return (loss, sample size, what is logged); the loss of each token without `reduce`."""
        softmax = getattr(model.decoder, "adaptive_softmax", None)
        if softmax is None:
            raise ValueError(
                "--criterion adaptive_loss: the model has no adaptive softmax; add "
                "--adaptive-softmax-cutoff"
            )
        output = model(**sample["net_input"])
        target = model.get_targets(sample, output)  # (B, T)
        is_padding = target.eq(self.padding_idx)
        words = target.masked_fill(is_padding, NO_WORD).view(-1)  # (B*T)
        # 16 bits end at 65,504, and round a sum of thousands to its first three digits
        single = torch.promote_types(output[0].dtype, torch.float32)
        loss = output[0].new_zeros(1 if reduce else len(words), dtype=single)
        # of the first cluster all words have scores, of the others those whose target is in them
        clusters = enumerate(zip(*softmax(output[0], words)))
        for index, (logits, classes) in clusters:
            if classes is None:
                continue
            losses = module.F.cross_entropy(
                logits.to(single),
                classes,
                ignore_index=NO_WORD,
                reduction="sum" if reduce else "none",
            )
            if reduce or not index:
                loss = loss + losses
                continue
            first, end = softmax.cutoff[index - 1], softmax.cutoff[index]
            is_inside = words.ge(first) & words.lt(end)
            loss = loss.index_add(0, is_inside.nonzero().view(-1), losses)
        tokens = target.numel() - int(is_padding.sum())
        size = sample["target"].size(0) if self.sentence_avg else tokens
        logged = {
            "loss": loss.data,
            "ntokens": tokens,
            "nsentences": target.size(0),
            "sample_size": size,
        }
        return loss, size, logged

    module.AdaptiveLoss.forward = forward


@patch(
    *CRITERIA,
    because="fairseq 0.12.2: an adaptive softmax trained with cross_entropy or "
    "label_smoothed_cross_entropy ends, at the first word of a later cluster, in an error about "
    "in-place operations",
)
def adaptive_softmaxes_have_their_loss(module: PatchedModule) -> None:
    """Refuse to train such a model with these criteria."""
    name = module.__name__.rpartition(".")[2]  # under which fairseq has registered it

    def check_softmax(self: Any, model: BaseFairseqModel, *args: Any, **kwargs: Any) -> None:
        softmax = getattr(getattr(model, "decoder", None), "adaptive_softmax", None)
        if softmax is not None and model.training:
            raise ValueError(
                f"--criterion {name} with --adaptive-softmax-cutoff; allowed: --criterion "
                "adaptive_loss, or without an adaptive softmax"
            )

    call_before(getattr(module, CRITERIA[module.__name__]), "compute_loss", check_softmax)


@patch(
    *LAYERS,
    because="fairseq 0.12.2: --adaptive-softmax-cutoff and --adaptive-input-cutoff with numbers "
    "that do not rise, or beyond the dictionary, end in an error that names no option",
)
def clusters_are_parts_of_the_dictionary(module: PatchedModule) -> None:
    """Refuse other numbers by name."""
    class_name, option = LAYERS[module.__name__]
    layer = getattr(module, class_name)
    signature = inspect.signature(layer.__init__)

    def check_cutoff(self: Any, *args: Any, **kwargs: Any) -> None:
        options = signature.bind(self, *args, **kwargs).arguments
        cutoff, words = list(options["cutoff"]), options["vocab_size"]
        if not cutoff or cutoff != sorted({*cutoff}) or not 1 <= cutoff[0] <= cutoff[-1] <= words:
            shown = ",".join(map(str, cutoff))
            raise ValueError(
                f"{option} {shown}: allowed: numbers that rise, from 1 to the dictionary's {words}"
            )

    call_before(layer, "__init__", check_cutoff)
