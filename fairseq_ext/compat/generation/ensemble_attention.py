"""The attention of an ensemble: the mean over those of its models that have any.

Without any there are no alignments.

Dimensions: R rows, S source positions, T target positions.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Mapping, Sequence

from ..patch_registry import PatchedModule, patch
from ..surrounded_calls import call_before
from ..user_errors import OptionError

if TYPE_CHECKING:
    from torch import Tensor


def attention_of(output: Any) -> Tensor | None:
    """Return the attention (R, T, S) in what a decoder or model returned, None if it has none."""
    extra = output[1] if len(output) > 1 else None
    attention = extra.get("attn") if isinstance(extra, dict) else extra
    if isinstance(attention, (list, tuple)):
        attention = attention[0] if attention else None
    return attention


def check_attention(lists: Sequence[Sequence[Mapping[str, Any]]]) -> None:
    """Raise OptionError where hypotheses have no attention from which to read an alignment.

    lists: fairseq's hypotheses of each sentence.
    """
    for hypothesis in (hypothesis for nbest in lists for hypothesis in nbest):
        # (S, T); None of a reference that is scored, and without axes of a search
        if hypothesis["attention"] is None or hypothesis["attention"].dim() < 2:
            raise OptionError(
                "--print-alignment and --replace-unk: the model returns no attention over the "
                "source; allowed: leave them out"
            )


class NotedAttention:
    """A model that notes whether its last output had attention.

    Args:
        model: of the ensemble.
    """

    def __init__(self, model: Any):
        self.model, self.has_attention = model, False

    def get_normalized_probs(self, output: Any, *more: Any, **options: Any) -> Tensor:
        """Return what the model does; stock asks for it once for each output."""
        self.has_attention = attention_of(output) is not None
        probabilities: Tensor = self.model.get_normalized_probs(output, *more, **options)
        return probabilities

    def __getattr__(self, name: str) -> Any:
        return getattr(self.model, name)


class NotedEnsemble:
    """An ensemble of models that note whether they have attention.

    Args:
        ensemble: fairseq's.
    """

    def __init__(self, ensemble: Any):
        self.ensemble = ensemble
        self.models = [NotedAttention(model) for model in ensemble.models]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.ensemble, name)


@patch(
    "fairseq.sequence_generator",
    because="fairseq 0.12.2: the attention of an ensemble is divided by the number of all models, "
    "also of those without attention, so that the weights of --print-alignment soft do not add up "
    "to 1; with --full-context-alignment such an ensemble ends in a TypeError",
)
def models_without_attention_do_not_count(module: PatchedModule) -> None:
    """Divide the sum over models by the number of those with attention."""
    decode = module.EnsembleModel.forward_decoder

    @functools.wraps(decode)
    def forward_decoder(self: Any, *args: Any, **options: Any) -> tuple[Tensor, Tensor | None]:
        """Return log p (R, V) and weights (R, S)."""
        noted = NotedEnsemble(self)
        probabilities, weights = decode(noted, *args, **options)
        count, models = sum(model.has_attention for model in noted.models), len(noted.models)
        # weights (R, S): stock has divided their sum by the number of models
        if weights is not None and count < models:
            weights = weights * (models / count)
        return probabilities, weights

    def forward_align(
        self: Any, src_tokens: Tensor, src_lengths: Tensor, prev_output_tokens: Tensor
    ) -> Tensor:
        """Return weights (R, T, S); a model that was trained to align is among them."""
        inputs = (src_tokens, src_lengths, prev_output_tokens)
        weights = [attention_of(model(*inputs)) for model in self.models]
        present = [weight for weight in weights if weight is not None]
        total: Tensor = sum(present[1:], present[0])
        return total / len(present)

    module.EnsembleModel.forward_decoder = forward_decoder
    module.EnsembleModelWithAlignment.forward_align = forward_align


@patch(
    "fairseq.sequence_generator",
    because="fairseq 0.12.2: --print-alignment and --replace-unk of a model without attention, "
    "such as lstm with --decoder-attention 0, end in an IndexError",
)
def alignments_need_attention(module: PatchedModule) -> None:
    """Refuse a model without attention by name."""

    def check_hypothesis(self: Any, sample: Any, hypothesis: Any) -> None:
        check_attention(hypothesis)

    generator = module.SequenceGeneratorWithAlignment
    call_before(generator, "_prepare_batch_for_alignment", check_hypothesis)
