"""--decoder-freeze-embed of LSTMs."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from ..patch_registry import PatchedModule, patch

if TYPE_CHECKING:
    from fairseq.models.lstm import LSTMModel
    from fairseq.tasks import FairseqTask


@patch(
    "fairseq.models.lstm",
    because="fairseq 0.12.2: --decoder-freeze-embed without --decoder-embed-path ends in "
    "AttributeError: 'NoneType' object has no attribute 'weight'",
)
def initial_decoder_embeddings_are_frozen(module: PatchedModule) -> None:
    """Freeze the random embeddings, as --encoder-freeze-embed does."""
    stock = module.LSTMModel.build_model.__func__

    def build_model(cls: type[LSTMModel], args: Any, task: FairseqTask) -> LSTMModel:
        """Return the model; args: as fairseq-train has parsed them."""
        is_frozen = getattr(args, "decoder_freeze_embed", False)
        # the other two ways have embeddings before the decoder is built
        others = ("decoder_embed_path", "share_all_embeddings")
        if not is_frozen or any(getattr(args, name, None) for name in others):
            return stock(cls, args, task)
        args = copy.copy(args)
        args.decoder_freeze_embed = False
        model = stock(cls, args, task)
        model.decoder.embed_tokens.weight.requires_grad = False
        return model

    module.LSTMModel.build_model = classmethod(build_model)
