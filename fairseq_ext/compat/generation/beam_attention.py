"""Attention in a search and after it: whose source it is, and what its weights add up to."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Iterator

from ..patch_registry import PatchedModule, patch
from ..surrounded_calls import call_after, call_within

if TYPE_CHECKING:
    from fairseq.modules import BeamableMM
    from torch import Tensor


@patch(
    "fairseq.modules.beamable_mm",
    because="fairseq 0.12.2: the attention of fconv takes as many rows for one sentence as the "
    "model was prepared for, --beam or 5, and gives all of them the first one's source, whatever "
    "the beam of translate(), sample() or --score-reference",
)
def hypotheses_have_their_source(module: PatchedModule) -> None:
    """Multiply the rows one by one, as in training."""

    def forward(self: BeamableMM, input1: Tensor, input2: Tensor) -> Tensor:
        """Return the product (B, N, M) of (B, N, K) and (B, K, M)."""
        return input1.bmm(input2)

    module.BeamableMM.forward = forward


@patch(
    "fairseq.models.fconv",
    "fairseq.models.fconv_self_att",
    because="fairseq 0.12.2: the attention of fconv is divided by the number of all layers, also "
    "of those without attention, and that of fconv_self_att by none, so that the weights of "
    "--print-alignment soft do not add up to 1",
)
def weights_add_up_to_one(module: PatchedModule) -> None:
    """Divide the sum over layers by the number of those with attention."""
    decoder = module.FConvDecoder
    stock = decoder.forward
    is_mean = module.__name__ == "fairseq.models.fconv"

    def forward(self: Any, *args: Any, **kw: Any) -> tuple[Tensor, Tensor | None]:
        """Return logits (B, T, V) and weights (B, T, S)."""
        logits, weights = stock(self, *args, **kw)
        if weights is not None:
            layers = sum(layer is not None for layer in self.attention)
            weights = weights * ((len(self.attention) if is_mean else 1) / layers)
        return logits, weights

    decoder.forward = forward


@patch(
    "fairseq.sequence_generator",
    because="fairseq 0.12.2: BART reads its source once for as many rows as the beam of the last "
    "search, for good: training with --eval-bleu, a forward pass or a search of beam 1 after it "
    "end in \"shape '[8, -1, 5, 1024]' is invalid\", or, where the batch divides by the beam, give "
    "groups of sentences the source of their first one, without a message",
)
def beams_end_with_their_search(module: PatchedModule) -> None:
    """Let the attention of a model know of a beam while the search runs, and no longer."""
    search = module.SequenceGenerator

    def end_beams(generator: Any, *args: Any, **kwargs: Any) -> None:
        for model in getattr(generator.model, "models", ()):
            attend_by_rows(model)

    @contextlib.contextmanager
    def within_beams(generator: Any, *args: Any, **kwargs: Any) -> Iterator[None]:
        generator.model.set_decoder_beam_size(generator.beam_size)
        try:
            yield
        finally:
            end_beams(generator)

    call_after(search, "__init__", end_beams)
    call_within(search, "_generate", within_beams)


def attend_by_rows(model: Any) -> None:
    """Let each row of a batch have the states of its own source, as before any search."""
    if hasattr(model, "set_beam_size"):
        model.set_beam_size(1)
        # a method of the class again: that of a search leaves the states as they are
        vars(model.encoder).pop("reorder_encoder_out", None)
