"""R3F (fairseq's example rxf): a loss of embeddings with noise."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any

from ..imported_examples import modules_of_examples
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
        *args: Any,  # the language of X-MOD
        token_embeddings: Tensor | None = None,  # (B, T, D)
        **more: Any,
    ) -> Any:
        if token_embeddings is None:  # as stock: a class of a plugin may not take the argument
            inputs = (src_tokens, features_only, return_all_hiddens, masked_tokens, *args)
            return stock(self, *inputs, **more)
        x, extra = self.extract_features(
            src_tokens, return_all_hiddens, *args, token_embeddings=token_embeddings, **more
        )
        if not features_only:
            x = self.output_layer(x, masked_tokens=masked_tokens)
        return x, extra

    encoder.forward = forward


@patch(
    *modules_of_examples("rxf.rxf_src.label_smoothed_cross_entropy_r3f"),
    because="fairseq 0.12.2: label_smoothed_cross_entropy_r3f gives token_embeddings to the model, "
    "which a translation model does not take; it ends in a TypeError",
)
def translation_models_take_noise(module: PatchedModule) -> None:
    """Give the embeddings to the encoder of a model whose `forward` does not take them."""
    criterion = module.LabelSmoothedCrossEntropyR3FCriterion
    stock = criterion.forward

    @functools.wraps(stock)
    def forward(self: Any, model: Any, sample: dict[str, Any], reduce: bool = True) -> Any:
        return stock(self, EmbeddedModel(model), sample, reduce)

    criterion.forward = forward


class EmbeddedModel:
    """A model whose call takes token_embeddings, (B, S, D) without the scale of embeddings."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def __call__(self, *args: Any, token_embeddings: Tensor | None = None, **inputs: Any) -> Any:
        if token_embeddings is None:
            return self._model(*args, **inputs)
        takes = inspect.signature(self._model.forward).parameters
        if "token_embeddings" in takes:  # BART
            return self._model(*args, token_embeddings=token_embeddings, **inputs)
        encoder = self._model.encoder
        stock = encoder.forward
        # the encoder is called by the model, and by its wrappers for several processes
        encoder.forward = functools.partial(stock, token_embeddings=token_embeddings)
        try:
            return self._model(*args, **inputs)
        finally:
            del encoder.forward
