"""Models that write all words of a translation at once: what they read and learn.

Dimensions: B sentences, S source positions, T target positions, V words, C units.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence

from ..patch_registry import PatchedModule, patch
from ..surrounded_calls import call_after

if TYPE_CHECKING:
    import numpy as np
    from torch import Tensor

NAMED_END = 3  # the number that stock takes for </s>, which is that of <unk>


@patch(
    "fairseq.models.nat.nonautoregressive_transformer",
    because="fairseq 0.12.2: --src-embedding-copy counts the words of a source from the first "
    "column, where a batch has padding, so that the copies depend on the batch; it ends in an "
    "error in ensembles, and where a batch is wider than its longest target",
)
def words_are_copied_from_the_source(module: PatchedModule) -> None:
    """Count the words of both sides from the first word; a model of an ensemble has its own."""
    decoder = module.NATransformerDecoder

    def forward_copying_source(
        self: Any, src_embeds: Tensor, src_masks: Tensor, tgt_masks: Tensor
    ) -> Tensor:
        """Return copies (B, T, C) of embeddings (B, S, C); masks are True for words."""
        if src_embeds.dim() == 4:  # of all models of an ensemble, which is the last dimension
            src_embeds = src_embeds[..., self.place_in_ensemble]
        words, targets = src_masks.sum(1, keepdim=True), tgt_masks.sum(1, keepdim=True)  # (B, 1)
        step = (words.float() - 1) / (targets.float() - 1)
        copied = (step * (tgt_masks.cumsum(1) - 1)).round().long()  # (B, T), of the words
        copied = (copied + src_masks.long().argmax(1, keepdim=True)).masked_fill(~tgt_masks, 0)
        return src_embeds.gather(1, copied.unsqueeze(2).expand(-1, -1, src_embeds.size(2)))

    decoder.forward_copying_source = forward_copying_source


@patch(
    "fairseq.models.nat.fairseq_nat_model",
    because="fairseq 0.12.2: a model of an ensemble does not know which of the sources is its own",
)
def ensembles_count_their_models(module: PatchedModule) -> None:
    """Note the place of each model."""

    def note_places(self: Any, models: Sequence[Any]) -> None:
        for place, model in enumerate(models):
            model.decoder.place_in_ensemble = place

    call_after(module.FairseqNATModel, "enable_ensemble", note_places)


@patch(
    "fairseq.models.nat.iterative_nonautoregressive_transformer",
    because="fairseq 0.12.2: the noise of --dae-ratio takes <unk> for </s>, so that it moves or "
    "overwrites </s>, and leaves the words before <unk> alone",
)
def noise_leaves_the_end(module: PatchedModule) -> None:
    """Exchange the two symbols while noise is added."""
    stock = module._sequential_poisoning

    def _sequential_poisoning(
        s: Tensor, V: int, beta: float = 0.33, bos: int = 2, eos: int = 3, pad: int = 1
    ) -> Tensor:
        """Return sentences (B, T) with noise: words repeated, exchanged, replaced."""
        noised = stock(_exchanged(s, eos, NAMED_END), V, beta, bos, NAMED_END, pad)
        return _exchanged(noised, eos, NAMED_END)

    module._sequential_poisoning = _sequential_poisoning


def _exchanged(words: Tensor, first: int, second: int) -> Tensor:
    """Return a copy in which two numbers have changed places."""
    return words.masked_fill(words == first, second).masked_fill(words == second, first)


@patch(
    "fairseq.models.nat.insertion_transformer",
    because="fairseq 0.12.2: a word that is to be inserted twice at one place has the weight of "
    "one of the two, and with --label-tau, long spans and taus other than 0.5, 1 and 2 have their "
    "middle half a word too far to the right",
)
def words_to_insert_have_their_weights(module: PatchedModule) -> None:
    """Add the weights of equal words up, and take the middle of a span for its middle."""

    def compute_score(self: Any, L: int, tau: float) -> np.ndarray[Any, Any]:
        """Return the weights (L,) of the words of a span."""
        import numpy as np

        distances = np.abs(np.arange(L) - (L - 1) / 2)
        weights = np.exp((distances.min() - distances) / tau)
        return weights / weights.sum()

    def _get_ins_targets(
        in_tokens: Tensor,
        out_tokens: Tensor,
        padding_idx: int,
        unk_idx: int,
        vocab_size: int,
        tau: float | None = None,
    ) -> Tensor:
        """Return the weights (B, T - 1, V) of what to insert behind each of T - 1 words."""
        import torch
        from fairseq import libnat

        inputs, outputs = (
            [[word for word in row if word != padding_idx] for row in tokens.tolist()]
            for tokens in (in_tokens, out_tokens)
        )
        sentences, columns = in_tokens.size(0), in_tokens.size(1) - 1
        indices, weights = [], []
        for row, path in enumerate(libnat.suggested_ed2_path(inputs, outputs, padding_idx)):
            # without what stands before <s> and behind </s>, and without the deletions
            for column, span in enumerate(path[1:-2]):
                begin = (row * columns + column) * vocab_size
                indices += [begin + word for word in span]
                weights += [module.neg_scorer(k, len(span), tau) for k in range(len(span))]
        labels = torch.zeros(sentences * columns * vocab_size, device=in_tokens.device)
        index = torch.tensor(indices, dtype=torch.long, device=in_tokens.device)
        labels.index_add_(0, index, torch.tensor(weights, dtype=labels.dtype).to(labels.device))
        return labels.view(sentences, columns, vocab_size)

    module.NegativeDistanceScore.compute_score = compute_score
    module._get_ins_targets = _get_ins_targets
