"""R3F (fairseq's example rxf): a loss of embeddings with noise."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from ..patch_registry import PatchedModule, patch

if TYPE_CHECKING:
    from torch import Tensor


@patch(
    "fairseq.models.roberta.model",
    "fairseq.models.xmod.model",
    because="fairseq 0.12.2: RoBERTa ignores token_embeddings, so that sentence_prediction_r3f "
    "compares two passes without noise, whatever --eps and --noise-type",
)
def embeddings_may_be_given(module: PatchedModule) -> None:
    """Hand the embeddings that the caller of RoBERTa computed to its layers."""
    for name in ("RobertaEncoder", "XMODEncoder"):
        encoder = vars(module).get(name)
        if encoder is not None and encoder.__module__ == module.__name__:
            take_embeddings(encoder)


def take_embeddings(encoder: Any) -> None:
    """Let `forward` of an encoder class give its token_embeddings to `extract_features`."""
    stock = encoder.forward

    @functools.wraps(stock)
    def forward(
        self: Any,
        src_tokens: Tensor,  # (B, T)
        features_only: bool = False,
        return_all_hiddens: bool = False,
        masked_tokens: Tensor | None = None,
        token_embeddings: Tensor | None = None,  # (B, T, D)
        **more: Any,
    ) -> Any:
        if token_embeddings is None:  # as stock: a class of a plugin may not take the argument
            return stock(self, src_tokens, features_only, return_all_hiddens, masked_tokens, **more)
        x, extra = self.extract_features(
            src_tokens,
            return_all_hiddens=return_all_hiddens,
            token_embeddings=token_embeddings,
            **more,
        )
        if not features_only:
            x = self.output_layer(x, masked_tokens=masked_tokens)
        return x, extra

    encoder.forward = forward
