"""The example byte_level_bpe: a Transformer whose embeddings pass a bidirectional GRU."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..imported_examples import modules_of_examples
from ..patch_registry import PatchedModule, patch

if TYPE_CHECKING:
    from torch import Tensor


@patch(
    *modules_of_examples("byte_level_bpe.gru_transformer"),
    because="fairseq 0.12.2 calls forward_embedding with an argument that gru_transformer lacks; "
    "its GRU reads the padding, so that a translation depends on the batch",
)
def embeddings_pass_the_gru(module: PatchedModule) -> None:
    """Take token_embedding, and let the GRU read the words of each sentence only."""

    def forward_embedding(
        self: Any,
        src_tokens: Tensor,  # (B, S)
        token_embedding: Tensor | None = None,  # (B, S, D)
    ) -> tuple[Tensor, Tensor]:
        if token_embedding is None:
            token_embedding = self.embed_tokens(src_tokens)
        x = embed = self.embed_scale * token_embedding
        if self.embed_positions is not None:
            x = embed + self.embed_positions(src_tokens)
        x = self.dropout_module(x)
        x = read_words(self.emb_ctx, x, src_tokens.ne(self.padding_idx))
        if self.layernorm_embedding is not None:
            x = self.layernorm_embedding(x)
        return self.dropout_module(x), embed

    module.GRUTransformerEncoder.forward_embedding = forward_embedding


def read_words(gru: Any, x: Tensor, is_word: Tensor) -> Tensor:
    """Return the states of a recurrent network for the words, and zeros for the padding.

    Args:
        gru: a torch.nn.GRU that is not batch_first.
        x: (B, S, D). is_word: (B, S) bool, False at padding, which is on either side.
    """
    import torch
    from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

    lengths = is_word.sum(dim=1)  # (B,)
    # a stable order of the columns with the words first, and back
    columns = torch.argsort((~is_word).to(torch.uint8), dim=1, stable=True)  # (B, S)
    back = torch.argsort(columns, dim=1).unsqueeze(-1)  # (B, S, 1)
    words_first = x.gather(1, columns.unsqueeze(-1).expand_as(x))
    packed = pack_padded_sequence(
        words_first.transpose(0, 1), lengths.clamp(min=1).cpu(), enforce_sorted=False
    )
    states, _ = gru(packed)
    y, _ = pad_packed_sequence(states, total_length=x.size(1))
    y = y.transpose(0, 1)  # (B, S, D)
    y = y.gather(1, back.expand_as(y))
    return y * is_word.unsqueeze(-1).type_as(y)
