"""Deep fusion with a language model, the paper's equations in plain torch.

Gulcehre et al. (2015, arXiv 1503.03535), Sec. 4.2, on the decoder of ../modules.py::

    s_t = GRU(E_s[y_{t-1}], s_{t-1}),  s_0 = 0                  the language model's state
    g_t = sigmoid(v_g . s_t + b_g)                              the controller
    o_t = tanh(W_h z_t + W_e E[y_{t-1}] + W_c c_t + b_r + g_t W_s s_t)     the readout

y_0 is the end symbol for the language model, which was trained that way; for the translation
model E[y_0] is the zero vector.

Deviation: the paper's readout is a maxout layer and its language model an LSTM; here they are the
tanh layer and the GRU of the system they extend, as in Table 2 of Firat et al. (2016).

Dimensions: R rows (sentences or hypotheses), T target positions, D embedding and L units of the
language model, O readout, V vocabulary.
"""

from dataclasses import dataclass
from typing import Optional, cast

import torch
from torch import Tensor, nn

from ...common.decoding import Cache
from ...common.dropout import RetainsDropout
from ...common.layers import embedding, linear
from ...common.recurrent import GRU
from ...common.sizes import check_sizes
from ..modules import MultiwayDecoder, MultiwaySize

STATE = "language_state"  # in the cache
CLOSED = -1.0  # b_g at the start (the paper): g_t is about 0.26, mostly the translation model


@dataclass(frozen=True)
class LanguageSize:
    """Sizes of a language model; ValueError with the option's name for one below 1.

    embed_dim: D. hidden_size: L.
    """

    embed_dim: int = 620
    hidden_size: int = 1000

    def __post_init__(self) -> None:
        check_sizes(self)


class LanguageState(RetainsDropout, nn.Module):
    """The recurrent part of a language model: words read -> s_t.

    Args:
        size: D and L.
        vocab_size: V.
        padding_index: index of the padding symbol.
        dropout: on embeddings.
    """

    def __init__(
        self, size: LanguageSize, vocab_size: int, padding_index: int, dropout: float = 0.0
    ):
        super().__init__()
        self.dropout = dropout
        self.embedding = embedding(vocab_size, size.embed_dim, padding_index)  # E_s
        self.recurrence = GRU(size.embed_dim, size.hidden_size)

    def forward(self, tokens: Tensor, cache: Optional[Cache] = None) -> Tensor:
        """Return the states (R, T, L) after each of ``tokens`` (R, T).

        The tokens are padded on the right or not at all. With a cache only the newest token is
        read, (R, 1, L), and the state is stored there.
        """
        if cache is not None:
            tokens = tokens[:, -1:]
        vectors = self.drop(self.embedding(tokens))  # (R, T, D)
        if cache is None:
            return self.recurrence(vectors)
        before = cast(Optional[Tensor], cache.get(STATE))
        if before is None:
            before = vectors.new_zeros(vectors.size(0), self.recurrence.hidden_size)
        cache[STATE] = state = self.recurrence.step(vectors[:, 0], before)  # (R, L)
        return state.unsqueeze(1)


class FusedDecoder(MultiwayDecoder):
    """A decoder whose readout also reads a language model's state.

    W_s starts at zero: the fused model starts as the translation model. What is trained has a name
    that begins with "readout" or "output", as in ``MultiwayDecoder``.

    Args:
        size: of the decoder.
        language_size: of the language model.
        vocab_size: V of both.
        padding_index: index of the padding symbol.
    """

    def __init__(
        self, size: MultiwaySize, language_size: LanguageSize, vocab_size: int, padding_index: int
    ):
        super().__init__(size, vocab_size, padding_index)
        units = language_size.hidden_size
        self.language = LanguageState(language_size, vocab_size, padding_index)
        self.readout_language = linear(units, size.readout_size, bias=False)  # W_s
        nn.init.zeros_(self.readout_language.weight)
        self.readout_gate = linear(units, 1)  # v_g, b_g
        nn.init.constant_(self.readout_gate.bias, CLOSED)

    def extra_readout_term(self, prev_tokens: Tensor, cache: Optional[Cache] = None) -> Tensor:
        """Return g_t W_s s_t: (R, T, O), or (R, 1, O) with a cache."""
        states = self.language(prev_tokens, cache)  # (R, T, L)
        gate = torch.sigmoid(self.readout_gate(states))  # (R, T, 1)
        return gate * self.readout_language(states)
