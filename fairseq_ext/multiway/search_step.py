"""A step of a search with half as many products as ``MultiwayDecoder.step``, and its values.

Matrices that read the same vector stand side by side, so that one product serves them all::

    E[y_{t-1}] -> query, gates, readout;   z_{t-1} -> query, gates;   [z_t ; c_t] -> readout

The gates' matrix of the context goes into the source, once for each of its positions: the weights
a_t sum to one. The sums are those of the equations in modules.py, added up in another order.

Dimensions: as in modules.py.
"""

from typing import TYPE_CHECKING, NamedTuple, Tuple

import torch
from torch import Tensor

from ..common.attention import additive_attention
from ..common.products import active_cache, compute_once, linear
from ..common.recurrent import gru_cell

if TYPE_CHECKING:  # modules.py imports this file
    from .modules import EncodedSource, MultiwayDecoder, SharedAttention

HALF = torch.float16, torch.bfloat16  # there another order of a sum shows in the translations


class StepWeights(NamedTuple):
    """Matrices side by side.

    word: [W_y; W; W_e] (A + 3H + O, D). bias: of the same rows. state: [W_z; U] (A + 3H, H).
    mix: [W_h, W_c] (O, 2H).
    """

    word: Tensor
    bias: Tensor
    state: Tensor
    mix: Tensor


def can_merge(vectors: Tensor) -> bool:
    """True in a search, where no parameter changes, of at least single precision."""
    return active_cache() is not None and vectors.dtype not in HALF


def values_and_gates(decoder: "MultiwayDecoder", values: Tensor) -> Tensor:
    """Return [values ; gates' projection of the values] (B, S, 4H), which a step averages."""
    return torch.cat([values, linear(values, decoder.gates_context.weight)], dim=2)


def merged_weights(decoder: "MultiwayDecoder") -> StepWeights:
    """Return the matrices of a decoder side by side; made once in a search."""
    return compute_once(lambda: _merged(decoder), decoder, "step")


def _merged(decoder: "MultiwayDecoder") -> StepWeights:
    query, gates = decoder.query_embedding.weight, decoder.gates_embedding
    readout = decoder.readout_embedding.weight, decoder.readout_state.bias
    return StepWeights(
        torch.cat([query, gates.weight, readout[0]]),
        # the query has no bias; that of the readout is in the layer of the state
        torch.cat([query.new_zeros(query.size(0)), gates.bias, readout[1]]),
        torch.cat([decoder.query_state.weight, decoder.gates_state.weight]),
        torch.cat([decoder.readout_state.weight, decoder.readout_context.weight], dim=1),
    )


def search_step(
    decoder: "MultiwayDecoder",
    attention: "SharedAttention",
    source: "EncodedSource",
    averaged: Tensor,
    vectors: Tensor,
    state: Tensor,
) -> Tuple[Tensor, Tensor, Tensor]:
    """Return z_t (R, H), a_t (R, S) and the sum inside the readout's tanh (R, O).

    Args:
        decoder: of the target language.
        attention: the shared one.
        source: the only one.
        averaged: (B, S, 4H), what ``values_and_gates`` returns.
        vectors: E[y_{t-1}] (R, D).
        state: z_{t-1} (R, H).
    """
    weights = merged_weights(decoder)
    units, width = state.size(1), attention.energy.size(0)
    word_query, word_gates, word_readout = linear(vectors, weights.word, weights.bias).split(
        [width, 3 * units, weights.mix.size(0)], dim=1
    )
    state_query, state_gates = linear(state, weights.state).split([width, 3 * units], dim=1)
    query = attention.query(torch.tanh(word_query + state_query))  # L_dec d_t (R, A)
    read, a = additive_attention(query, source.keys, averaged, attention.energy, source.padding)
    context, gates = read.split([units, 3 * units], dim=1)  # c_t, and W of the GRU behind it
    state = gru_cell(word_gates + gates, state_gates, state)
    return state, a, linear(torch.cat([state, context], dim=1), weights.mix) + word_readout
