"""The losses of latency of simultaneous translation.

Dimensions: B sentences, H heads of all layers, T target and S source positions.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from ..patch_registry import PatchedModule, patch

if TYPE_CHECKING:
    from torch import Tensor


@patch(
    "fairseq.criterions.label_smoothed_cross_entropy_latency_augmented",
    because="fairseq 0.12.2: --latency-var-weight has no effect, the variance has the weight of "
    "the latency; --latency-gather-method average takes the mean of delays in place of the latency",
)
def latencies_have_their_weights(module: PatchedModule) -> None:
    """Give the variance its weight, and "average" the mean latency of the heads."""
    criterion = module.LatencyAugmentedLabelSmoothedCrossEntropyCriterion
    stock = criterion.compute_latency_loss

    @functools.wraps(stock)
    def compute_latency_loss(
        self: Any, model: Any, sample: dict[str, Any], net_output: Any
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return the loss, the latency and the variance of the delays, summed over sentences."""
        _, latency, variance = stock(self, model, sample, net_output)
        if self.latency_gather_method == "average":
            latency = _mean_latency(module, self, model, sample, net_output)
        loss = self.latency_avg_weight * latency + self.latency_var_weight * variance
        return loss, latency, variance

    criterion.compute_latency_loss = compute_latency_loss


def _mean_latency(
    module: Any, criterion: Any, model: Any, sample: dict[str, Any], net_output: Any
) -> Tensor:
    """Return the sum over sentences of the latency, which is a mean over heads."""
    alpha = module.torch.cat([layer["alpha"] for layer in net_output[1].attn_list], dim=1)
    sentences, heads, steps, positions = alpha.shape  # B, H, T, S
    places = module.torch.arange(1, positions + 1).type_as(alpha)
    delays = (places * alpha).sum(dim=-1)  # (B, H, T): source positions that are read, expected
    is_padding = model.get_targets(sample, net_output).eq(criterion.padding_idx)  # (B, T)
    latency = module.LATENCY_METRICS[criterion.latency_avg_type](
        delays.flatten(0, 1),
        sample["net_input"]["src_lengths"].repeat_interleave(heads),
        None,
        target_padding_mask=is_padding.repeat_interleave(heads, dim=0),
    )
    result: Tensor = latency.view(sentences, heads).mean(dim=1).sum()
    return result
