"""The criterion of Transformers that learn alignments."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ..patch_registry import PatchedModule, patch
from .ignored_prefixes import scored_words

if TYPE_CHECKING:
    from fairseq.models import BaseFairseqModel
    from fairseq.tasks import FairseqTask
    from torch import Tensor


@patch(
    "fairseq.criterions.label_smoothed_cross_entropy_with_alignment",
    because="fairseq 0.12.2: label_smoothed_cross_entropy_with_alignment ignores its options "
    "--ignore-prefix-size and --report-accuracy; with --alignment-layer 4, the default of "
    "transformer_align, and four layers or fewer it ends in \"'NoneType' object has no attribute "
    "'shape'\", with --alignment-heads 0 the loss is NaN, and with --decoder-layerdrop each step "
    "aligns another layer",
)
def alignment_losses_read_their_options(module: PatchedModule) -> None:
    """Leave prefixes out of the loss, and log the accuracy; alignments of prefixes still count."""
    criterion = module.LabelSmoothedCrossEntropyCriterionWithAlignment
    base_class = module.LabelSmoothedCrossEntropyCriterion
    build = criterion.__init__

    # fairseq finds the options by the names of the arguments
    def __init__(
        self: Any,
        task: FairseqTask,
        sentence_avg: bool,
        label_smoothing: float,
        alignment_lambda: float,
        ignore_prefix_size: int = 0,
        report_accuracy: bool = False,
    ) -> None:
        build(self, task, sentence_avg, label_smoothing, alignment_lambda)
        self.ignore_prefix_size, self.report_accuracy = ignore_prefix_size, report_accuracy

    def forward(
        self: Any, model: BaseFairseqModel, sample: dict[str, Any], reduce: bool = True
    ) -> tuple[Tensor, Any, dict[str, Any]]:
        """Return (loss, sample size, what is logged), the alignment loss apart."""
        output = model(**sample["net_input"])
        loss, nll = self.compute_loss(model, output, sample, reduce=reduce)
        words, sentences = scored_words(self, sample), sample["target"].size(0)
        size = sentences if self.sentence_avg else words
        log = {"loss": loss.detach(), "nll_loss": nll.detach(), "ntokens": words}
        log.update(nsentences=sentences, sample_size=size)
        if self.report_accuracy:
            log["n_correct"], log["total"] = self.compute_accuracy(model, output, sample)
        if sample.get("alignments") is not None:
            # decoders other than fairseq's transformer return something else, or no attention
            extra = output[1] if isinstance(output[1], dict) else {}
            attentions = extra.get("attn") or [None]
            check_alignment_options(model, attentions[0])
            alignment_loss = self.compute_alignment_loss(sample, output)
            if alignment_loss is not None:  # some sentence is aligned
                log["alignment_loss"] = alignment_loss.detach()
                loss = loss + self.alignment_lambda * alignment_loss
        return loss, size, log

    def reduce_metrics(cls: type, logging_outputs: list[dict[str, Any]]) -> None:
        base_class.reduce_metrics.__func__(cls, logging_outputs)
        aligned, size = (
            sum(log.get(name, 0) for log in logging_outputs)
            for name in ("alignment_loss", "sample_size")
        )
        if size:
            module.metrics.log_scalar("alignment_loss", aligned / size / math.log(2), size, round=3)

    criterion.__init__, criterion.forward = __init__, forward
    criterion.reduce_metrics = classmethod(reduce_metrics)


def check_alignment_options(model: BaseFairseqModel, attention: Tensor | None) -> None:
    """Raise ValueError, naming the option, if no layer or no head is there to be aligned."""
    layerdrop = getattr(getattr(model, "decoder", None), "decoder_layerdrop", 0)
    if layerdrop and model.training:
        raise ValueError(
            f"--decoder-layerdrop {layerdrop} is not allowed with --criterion "
            "label_smoothed_cross_entropy_with_alignment, which needs --alignment-layer in every "
            "step; allowed: 0"
        )
    heads = getattr(model, "alignment_heads", None)
    if heads is not None and heads < 1:
        raise ValueError(f"--alignment-heads {heads}: allowed: at least 1")
    if attention is None and not hasattr(model, "alignment_layer"):
        raise ValueError(
            f"--criterion label_smoothed_cross_entropy_with_alignment: {type(model).__name__} "
            "gives no attention in training that could be aligned; allowed: transformer_align, or "
            "without --load-alignments"
        )
    if attention is None:
        layer = getattr(model, "alignment_layer", None)
        raise ValueError(
            f"--alignment-layer {layer}: the decoder has no such layer; allowed: from 0 to "
            "--decoder-layers less 1"
        )
