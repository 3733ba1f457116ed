"""The losses of latency of simultaneous translation.

Dimensions: B sentences, H heads of all layers, T target and S source positions.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

from ..patch_registry import PatchedModule, patch
from ..user_errors import OptionError

if TYPE_CHECKING:
    from torch import Tensor


GATHERED = ("average", "max", "weighted_average")  # of --latency-gather-method


@patch(
    "fairseq.criterions.label_smoothed_cross_entropy_latency_augmented",
    because="SimulEval 1.1 and later, the versions on PyPI, have no simuleval.metrics: "
    "latency_augmented_label_smoothed_cross_entropy ends in 'make sure SimulEval is installed'; "
    "fairseq 0.12.2: other names of a latency end its first update in a KeyError",
)
def latencies_are_computed(module: PatchedModule) -> None:
    """Give the criterion the three latencies that SimulEval 1.0 had, and check its options."""
    criterion = module.LatencyAugmentedLabelSmoothedCrossEntropyCriterion
    stock = criterion.__init__

    @functools.wraps(stock)
    def __init__(self: Any, *args: Any, **options: Any) -> None:
        stock(self, *args, **options)
        for name, allowed in (
            ("latency_avg_type", module.LATENCY_METRICS),
            ("latency_gather_method", GATHERED),
        ):
            if getattr(self, name) not in allowed:
                option = f"--{name.replace('_', '-')}"
                names = ", ".join(sorted(allowed))
                raise OptionError(f"{option} {getattr(self, name)}: allowed: {names}")

    criterion.__init__ = __init__
    if module.LATENCY_METRICS is None:
        module.LATENCY_METRICS = {
            "average_lagging": average_lagging,
            "average_proportion": average_proportion,
            "differentiable_average_lagging": differentiable_average_lagging,
        }


def average_proportion(
    delays: Tensor, src_lens: Tensor, ref_lens: Tensor | None, target_padding_mask: Tensor
) -> Tensor:
    """Return the mean share of the source that is read before a target word, (N,).

    Cho and Esipova (2016), "Can neural machine translation do simultaneous translation?"

    Args:
        delays: (N, T), how many source words are read before each target word.
        src_lens: (N,), words of the sources.
        ref_lens: no use is made of it.
        target_padding_mask: (N, T), True at padding.
    """
    words = (~target_padding_mask).sum(dim=1)
    return delays.masked_fill(target_padding_mask, 0.0).sum(dim=1) / (words * src_lens)


def average_lagging(
    delays: Tensor, src_lens: Tensor, ref_lens: Tensor | None, target_padding_mask: Tensor
) -> Tensor:
    """Return by how many source words a translation lags, until all of it is read: (N,).

    Ma et al., ACL 2019, "STACL: Simultaneous Translation with Implicit Anticipation and
    Controllable Latency". Arguments are those of `average_proportion`.
    """
    is_read = delays.ge(src_lens.unsqueeze(1))
    # words behind the first at which the whole source is read
    left_out = is_read.cumsum(dim=1).gt(is_read.long()) | target_padding_mask
    lagging = _lagging(delays, src_lens, target_padding_mask).masked_fill(left_out, 0.0)
    return lagging.sum(dim=1) / (~left_out).sum(dim=1)


def differentiable_average_lagging(
    delays: Tensor, src_lens: Tensor, ref_lens: Tensor | None, target_padding_mask: Tensor
) -> Tensor:
    """Return by how many source words a translation lags, each word taking its time: (N,).

    Cherry and Foster (2019), "Thinking Slow about Latency Evaluation for Simultaneous Machine
    Translation". A word comes no sooner than |x| / |y| after the one before, so that
    what a word lags is the maximum up to it. Arguments are those of `average_proportion`.
    """
    lagging = _lagging(delays, src_lens, target_padding_mask)
    most = lagging.masked_fill(target_padding_mask, -math.inf).cummax(dim=1).values
    words = (~target_padding_mask).sum(dim=1)
    return most.masked_fill(target_padding_mask, 0.0).sum(dim=1) / words


def _lagging(delays: Tensor, src_lens: Tensor, target_padding_mask: Tensor) -> Tensor:
    """Return the delays beyond those of a translation in step with the source, (N, T)."""
    words = (~target_padding_mask).sum(dim=1)
    pace = (src_lens / words).unsqueeze(1)  # source words for each target word
    before = (~target_padding_mask).cumsum(dim=1) - 1
    return delays - pace * before


@patch(
    "fairseq.criterions.label_smoothed_cross_entropy_latency_augmented",
    because="fairseq 0.12.2: --latency-var-weight has no effect, the variance has the weight of "
    "the latency, and counts padding; --latency-gather-method average takes the mean of delays in "
    "place of the latency",
)
def latencies_have_their_weights(module: PatchedModule) -> None:
    """Give the variance its weight and its words, and "average" the mean latency of the heads."""

    def compute_latency_loss(
        self: Any, model: Any, sample: dict[str, Any], net_output: Any
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return the loss, the latency and the variance of the delays, summed over sentences."""
        alpha = module.torch.cat([layer["alpha"] for layer in net_output[1].attn_list], dim=1)
        sentences, heads, _, positions = alpha.shape  # B, H, T, S
        places = module.torch.arange(1, positions + 1).type_as(alpha)
        delays = (places * alpha).sum(dim=-1)  # (B, H, T): source positions that are read, expected
        is_padding = model.get_targets(sample, net_output).eq(self.padding_idx)  # (B, T)
        latency = module.LATENCY_METRICS[self.latency_avg_type](
            delays.flatten(0, 1),
            sample["net_input"]["src_lengths"].repeat_interleave(heads),
            None,
            target_padding_mask=is_padding.repeat_interleave(heads, dim=0),
        )
        latency = gathered(latency.view(sentences, heads), self.latency_gather_method).sum()
        variances = delays.var(dim=1).masked_fill(is_padding, 0.0).sum(dim=1)
        variance = (variances / (~is_padding).sum(dim=1)).sum()
        loss = self.latency_avg_weight * latency + self.latency_var_weight * variance
        return loss, latency, variance

    module.LatencyAugmentedLabelSmoothedCrossEntropyCriterion.compute_latency_loss = (
        compute_latency_loss
    )


def gathered(latency: Tensor, method: str) -> Tensor:
    """Return the latency of sentences, (B,), from that of their heads, (B, H)."""
    if method == "average":
        return latency.mean(dim=1)
    if method == "max":
        return latency.max(dim=1).values
    return (latency * latency.softmax(dim=1)).sum(dim=1)
