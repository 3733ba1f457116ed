"""fairseq's LSTM: the columns of its encoder, and of the attention, are those of the source.

Dimensions: B sentences, S source positions, C units of the encoder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Tuple

from ..patch_registry import PatchedModule, patch

if TYPE_CHECKING:
    from torch import Tensor


def _forward(
    self, src_tokens: Tensor, src_lengths: Tensor, enforce_sorted: bool = True
) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return states (S, B, C), last h and m of each layer, and padding (S, B).

    src_tokens: (B, S). src_lengths: (B,). torch.jit compiles this, which is why some types and
    names of torch are left out.
    """
    columns = src_tokens.size(1)
    lengths = src_lengths.cpu()  # in the place of the stock encoder, which waits for them as well
    longest = int(lengths.max())
    is_padding = src_tokens.eq(self.padding_idx)
    inside = src_tokens
    if longest < columns:  # --required-seq-len-multiple, --num-batch-buckets
        is_left = bool(is_padding[:, 0].any())
        inside = src_tokens[:, columns - longest :] if is_left else src_tokens[:, :longest]
    states, hidden, cell, padding = self.padding_last(inside, lengths, enforce_sorted)
    if longest < columns:
        inner_states, inner_padding = states, padding
        states = inner_states.new_zeros(columns, inner_states.size(1), inner_states.size(2))
        padding = inner_padding.new_ones(columns, inner_padding.size(1))
        states[:longest], padding[:longest] = inner_states, inner_padding
    # sources that are padded on the right were not moved; training asks for no alignments
    if not self.training and bool(is_padding[:, 0].any()):
        column = src_tokens.new_ones(columns).cumsum(0).unsqueeze(1) - 1  # (S, 1)
        places = (column - is_padding.sum(1)).remainder(columns)  # (S, B): where they are now
        states = states.gather(0, places.unsqueeze(2).expand(-1, -1, states.size(2)))
        padding = padding.gather(0, places)
    return states, hidden, cell, padding


@patch(
    "fairseq.models.lstm",
    because="fairseq 0.12.2: the encoder moves padding to the right, and the attention with it: "
    "--print-alignment and --replace-unk name other words in a batch than alone; a batch wider "
    "than its sources, by --required-seq-len-multiple or --num-batch-buckets, ends in an "
    "AssertionError",
)
def attention_has_the_columns_of_the_source(module: PatchedModule) -> None:
    """Put the states of the encoder to where the words of a source are."""
    encoder = module.LSTMEncoder
    encoder.padding_last = encoder.forward
    encoder.padding_last.__name__ = "padding_last"  # by which torch.jit knows it
    encoder.forward = _forward
