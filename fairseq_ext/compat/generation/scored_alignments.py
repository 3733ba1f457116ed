"""--score-reference: soft alignments, ensembles, and targets that are padded on the left."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Mapping, Sequence

from ..command_line.chosen_classes import READING_PADDING
from ..patch_registry import PatchedModule, patch
from ..user_errors import OptionError
from .ensemble_attention import attention_of, check_attention

if TYPE_CHECKING:
    from fairseq.models import BaseFairseqModel
    from fairseq.sequence_scorer import SequenceScorer


@patch(
    "fairseq.sequence_scorer",
    because="fairseq 0.12.2: --score-reference with --print-alignment soft ends in a TypeError; "
    "with --left-pad-target the scores are those of padding; an ensemble of a model with attention "
    "and one without ends in a TypeError",
)
def references_are_scored_as_asked(module: PatchedModule) -> None:
    """Give the weights of each target word where asked for; begin where the target begins.

    An ensemble has the mean of the weights of those models that have any.
    """
    scorer = module.SequenceScorer
    generate = scorer.generate

    def aligned(
        self: SequenceScorer,
        models: Sequence[BaseFairseqModel],
        sample: Mapping[str, Any],
        **options: Any,
    ) -> list[list[dict[str, Any]]]:
        """Return the references as hypotheses, with their scores and alignments."""
        is_padding = sample["target"].eq(self.pad)  # (B, T)
        # blocks after a --context-window say where they begin, and have padding at both ends
        if "start_indices" not in sample and bool(is_padding[:, 0].any()):
            _check_masks(models)
            sample = {**sample, "start_indices": is_padding.sum(dim=1).tolist()}
        scored = [_ScoredModel(model) for model in models]
        lists: list[list[dict[str, Any]]] = generate(self, scored, sample, **options)
        if self.compute_alignment:
            check_attention(lists)
        aligned_models = sum(model.has_attention for model in scored)
        for (hypothesis,) in lists:
            if 0 < aligned_models < len(models):
                hypothesis["attention"] *= len(models) / aligned_models
        if self.compute_alignment != "soft":
            return lists
        sources, targets = sample["net_input"]["src_tokens"], sample["target"]
        for (hypothesis,), source, target in zip(lists, sources, targets):
            hypothesis["alignment"] = module.utils.extract_soft_alignment(
                hypothesis["attention"], source, target, self.pad, self.eos
            )
        return lists

    scorer.generate = aligned


class _ScoredModel:
    """A model whose output has no entry of attention where it has none, which stock cannot add."""

    def __init__(self, model: BaseFairseqModel):
        self.model, self.has_attention = model, False

    def __call__(self, **inputs: Any) -> tuple[Any, ...]:
        output: tuple[Any, ...] = self.model(**inputs)
        self.has_attention = attention_of(output) is not None
        extra = output[1] if len(output) > 1 else None
        if self.has_attention or not isinstance(extra, dict):
            return output
        return output[0], {**extra, "attn": None}, *output[2:]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.model, name)


def _check_masks(models: Sequence[BaseFairseqModel]) -> None:
    """Raise OptionError for a model that would read the padding before the words."""
    for model in models:
        if (type(model).__module__, type(model).__name__) in READING_PADDING:
            raise OptionError(
                f"--left-pad-target with --score-reference: {type(model).__name__} would read the "
                "padding before the words; allowed: one of the two"
            )
