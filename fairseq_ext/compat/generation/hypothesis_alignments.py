"""The alignments of a search, however many hypotheses a sentence has.

Dimensions: S source positions, T target positions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..patch_registry import PatchedModule, patch

if TYPE_CHECKING:
    from torch import Tensor


@patch(
    "fairseq.sequence_generator",
    because="fairseq 0.12.2: --print-alignment and --replace-unk expect as many hypotheses of each "
    "sentence as --beam; with fewer, as with --constraints, they end in an IndexError",
)
def each_hypothesis_is_aligned(module: PatchedModule) -> None:
    """Align the hypotheses that there are."""
    import torch
    from fairseq.data import data_utils

    generator = module.SequenceGeneratorWithAlignment

    @torch.no_grad()
    def generate(self: Any, models: Any, sample: dict[str, Any], **kwargs: Any) -> Any:
        """Return the hypotheses of each sentence, each with an "alignment"."""
        sentences = self._generate(sample, **kwargs)
        batch = self._prepare_batch_for_alignment(sample, sentences)
        source, source_lengths, previous, target = batch
        hypotheses = [hypothesis for nbest in sentences for hypothesis in nbest]
        # a decoder that sees all of the target is run again; others have looked while they wrote
        if any(getattr(model, "full_context_alignment", False) for model in self.model.models):
            attention = self.model.forward_align(source, source_lengths, previous)
        else:
            attention = [hypothesis["attention"].t() for hypothesis in hypotheses]  # (T, S) each
        source, target = source.cpu(), target.cpu()
        for row, hypothesis in enumerate(hypotheses):
            hypothesis["alignment"] = self.extract_alignment(
                attention[row].cpu(), source[row], target[row], self.pad, self.eos
            )
        return sentences

    def _prepare_batch_for_alignment(
        self: Any, sample: dict[str, Any], hypothesis: Any
    ) -> tuple[Tensor, ...]:
        """Return sources, their lengths, shifted and plain targets, a row for each hypothesis."""
        net_input = sample["net_input"]
        device = net_input["src_tokens"].device
        counts = torch.tensor([len(nbest) for nbest in hypothesis], device=device)
        rows = [entry["tokens"] for nbest in hypothesis for entry in nbest]
        targets = (
            data_utils.collate_tokens(
                rows, self.pad, self.eos, self.left_pad_target, move_eos_to_beginning=is_shifted
            )
            for is_shifted in (True, False)
        )
        sources = (net_input["src_tokens"], net_input["src_lengths"])
        return (*(part.repeat_interleave(counts, dim=0) for part in sources), *targets)

    generator.generate = generate
    generator._prepare_batch_for_alignment = _prepare_batch_for_alignment
