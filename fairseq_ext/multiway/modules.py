"""Multi-way translation with a shared attention mechanism, the paper's equations in plain torch.

Firat, Cho and Bengio (NAACL 2016), as the authors' released code resolves them. Encoder n and
decoder m belong to a language each; the attention belongs to all of them::

    h_i  = W_adp [forwards_i ; backwards_i] + b_adp              annotations           (Eq. 9)
    h~_i = tanh(L_enc h_i + b)                                   for the attention     (Eq. 10)
    d_t  = tanh(W_y E[y_{t-1}] + W_z z_{t-1})                    for the attention     (Eq. 12)
    e_ti = u . tanh(h~_i + L_dec d_t);  a_t = softmax(e_t)                             (Eq. 2, 3)
    c_t  = P sum_i a_ti h_i + b_P                                context (Eq. 4) behind f_adp
    z_t  = GRU([E[y_{t-1}] ; c_t], z_{t-1})                                            (Eq. 5)
    z_0  = tanh(U V tanh(W h_1) + c)                             initial state         (Eq. 11)
    p(y_t) = softmax(O tanh(W_h z_t + W_e E[y_{t-1}] + W_c c_t + b_r) + b_o)           (Eq. 7)

E[y_0] is the zero vector. L_enc, b, L_dec, u, P, b_P, W and V are shared; W_adp and b_adp belong to
the encoder; W_y, W_z, U, c and the readout belong to the decoder.

Deviation: the text of Eq. 10 has h~_i = tanh(h_i) and leaves f_score open; with one matrix inside
it, that is u . tanh(L_enc tanh(h_i) + b + L_dec d_t). The released code applies the matrix first,
as above; the parameters are the same.

Dimensions: B sentences, R = B * K rows of the beams, S source positions, T target positions,
D embedding, H units of a decoder, G units of an encoder in each direction, A annotation and
attention, I initial state, O readout, V vocabulary. Masks are bool, True = padding.
"""

from dataclasses import dataclass
from typing import List, NamedTuple, Optional, Tuple, cast

import torch
from torch import Tensor, nn

from ..common.attention import additive_attention
from ..common.decoding import PER_SENTENCE, Cache, per_row
from ..common.dropout import RetainsDropout
from ..common.layers import embedding, linear
from ..common.padding import align_left
from ..common.recurrent import gru_cell
from ..common.sizes import check_sizes
from .attentive_gru import attentive_gru
from .encoders import ENCODERS
from .search_step import can_merge, search_step, values_and_gates

VALUES_AND_GATES = PER_SENTENCE + "values_and_gates"  # in the cache
# z (R, T, H), c (R, T, H), a (R, T, S) of every source
Decoded = Tuple[Tensor, Tensor, List[Tensor]]


@dataclass(frozen=True)
class MultiwaySize:
    """Sizes and the dropout rate; ValueError with the option's name for one out of range.

    embed_dim: D. hidden_size: H. context_size: A. readout_size: O. init_hidden_size and init_size:
    the hidden layer and the output (I) of the shared initialiser. dropout: on embeddings and on the
    readout (the paper: 0).
    """

    embed_dim: int = 620
    hidden_size: int = 1000
    context_size: int = 1200
    readout_size: int = 1000
    init_hidden_size: int = 500
    init_size: int = 600
    dropout: float = 0.0

    def __post_init__(self) -> None:
        check_sizes(self)


class MultiwayEncoder(RetainsDropout, nn.Module):
    """Encoder n: bidirectional GRU and the map into the common space (Eq. 1, 9).

    Args:
        size: D, A and the dropout rate.
        hidden_size: G; encoders may differ in it.
        vocab_size: V.
        padding_index: index of the padding symbol.
        kind: what stands in place of the GRU, a name of ``encoders.ENCODERS`` (Sec. 4).
    """

    def __init__(
        self,
        size: MultiwaySize,
        hidden_size: int,
        vocab_size: int,
        padding_index: int,
        kind: str = "gru",
    ):
        super().__init__()
        self.dropout, self.padding_index = size.dropout, padding_index
        self.embedding = embedding(vocab_size, size.embed_dim, padding_index)
        # under this name in checkpoints, whatever the kind
        self.recurrence = ENCODERS[kind](size.embed_dim, hidden_size)
        self.adapt = linear(2 * hidden_size, size.context_size)  # W_adp, b_adp

    def encode(self, tokens: Tensor, literal: bool = False) -> Tuple[Tensor, Tensor]:
        """Return annotations h (B, S, A), padding (B, S) of tokens (B, S), padded at either end.

        Both come with the padding at the end. ``literal``: step by step.
        """
        tokens = align_left(tokens, self.padding_index)
        padding = tokens.eq(self.padding_index)  # (B, S)
        vectors = self.drop(self.embedding(tokens))  # (B, S, D)
        return self.adapt(self.recurrence(vectors, padding, literal)), padding  # h (B, S, A)


class EncodedSource(NamedTuple):
    """What a decoder needs of one encoded source.

    keys: h~ (B, S, A). values: P h + b_P (B, S, H). padding: (B, S). initial: V tanh(W h_1) (B, I).
    """

    keys: Tensor
    values: Tensor
    padding: Tensor
    initial: Tensor


class SharedAttention(nn.Module):
    """What all pairs share: the attention (Eq. 2-4), f_adp, and phi_init (Eq. 11)."""

    def __init__(self, size: MultiwaySize):
        super().__init__()
        self.key = linear(size.context_size, size.context_size)  # L_enc, b
        self.query = linear(size.context_size, size.context_size, bias=False)  # L_dec
        self.energy = nn.Parameter(torch.empty(size.context_size))  # u
        nn.init.normal_(self.energy, std=size.context_size**-0.5)
        self.value = linear(size.context_size, size.hidden_size)  # P, b_P
        self.initial_in = linear(size.context_size, size.init_hidden_size, bias=False)  # W
        self.initial_out = linear(size.init_hidden_size, size.init_size, bias=False)  # V

    def prepare(self, annotations: Tensor, padding: Tensor) -> EncodedSource:
        """Return all of the annotations h (B, S, A) that does not depend on the target.

        The weights a_t sum to one, so P may be applied to the annotations before they are averaged.
        """
        return EncodedSource(
            keys=torch.tanh(self.key(annotations)),
            values=self.value(annotations),
            padding=padding,
            # annotations are aligned on the left: position 0 holds h_1, whatever the padding was
            initial=self.initial_out(torch.tanh(self.initial_in(annotations[:, 0]))),
        )

    def forward(self, query: Tensor, source: EncodedSource) -> Tuple[Tensor, Tensor]:
        """Return c_t (R, H) and a_t (R, S) of d_t (R, A)."""
        return additive_attention(
            self.query(query), source.keys, source.values, self.energy, source.padding
        )


class MultiwayDecoder(RetainsDropout, nn.Module):
    """Decoder m: its part of the attention (Eq. 12), its GRU (Eq. 5) and its readout (Eq. 7)."""

    def __init__(self, size: MultiwaySize, vocab_size: int, padding_index: int):
        super().__init__()
        self.dropout = size.dropout
        units, width = size.hidden_size, size.embed_dim
        self.embedding = embedding(vocab_size, width, padding_index)  # E
        self.initial = linear(size.init_size, units)  # U, c
        self.query_embedding = linear(width, size.context_size, bias=False)  # W_y
        self.query_state = linear(units, size.context_size, bias=False)  # W_z
        self.gates_embedding = linear(width, 3 * units)  # W of the GRU, the embedding's columns
        self.gates_context = linear(units, 3 * units, bias=False)  # and the context's
        self.gates_state = nn.Linear(units, 3 * units, bias=False)
        # each gate's U is orthogonal by itself
        for part in self.gates_state.weight.chunk(3):
            nn.init.orthogonal_(part)
        self.readout_state = linear(units, size.readout_size)  # W_h, b_r
        self.readout_embedding = linear(width, size.readout_size, bias=False)  # W_e
        self.readout_context = linear(units, size.readout_size, bias=False)  # W_c
        self.output = linear(size.readout_size, vocab_size)  # O, b_o

    def embed(self, prev_tokens: Tensor, first: bool) -> Tensor:
        """Return E[y] (R, T, D); with ``first`` the first position is y_0, the zero vector."""
        vectors = self.embedding(prev_tokens)
        if first:
            vectors = torch.cat([torch.zeros_like(vectors[:, :1]), vectors[:, 1:]], dim=1)
        return self.drop(vectors)

    def initial_state(self, sources: List[EncodedSource]) -> Tensor:
        """Return z_0 (B, H) (Eq. 11); of several sources the mean."""
        states = [torch.tanh(self.initial(source.initial)) for source in sources]
        return cast(Tensor, sum(states) / len(states))

    def step(
        self,
        vectors: Tensor,
        state: Tensor,
        attention: SharedAttention,
        sources: List[EncodedSource],
    ) -> Tuple[Tensor, Tensor, List[Tensor]]:
        """Return z_t (R, H), c_t (R, H), a_t of every source, of E[y_{t-1}] (R, D), z_{t-1} (R, H).

        With several sources c_t is the mean of their contexts (early averaging, Firat et al.
        2016b).
        """
        query = torch.tanh(self.query_embedding(vectors) + self.query_state(state))  # d_t (R, A)
        read = [attention(query, source) for source in sources]
        context = cast(Tensor, sum(context for context, _ in read) / len(read))
        gates = self.gates_embedding(vectors) + self.gates_context(context)  # (R, 3H)
        return (
            gru_cell(gates, self.gates_state(state), state),
            context,
            [weights for _, weights in read],
        )

    def literal(
        self, vectors: Tensor, attention: SharedAttention, sources: List[EncodedSource]
    ) -> Decoded:
        """Return z, c (R, T, H), [a (R, T, S)] of (R, T, D), step by step: the specification."""
        state = per_row(self.initial_state(sources), vectors.size(0))
        steps = []
        for t in range(vectors.size(1)):
            steps.append(self.step(vectors[:, t], state, attention, sources))
            state = steps[-1][0]
        states, contexts, weights = zip(*steps)
        return (
            torch.stack(states, 1),
            torch.stack(contexts, 1),
            [torch.stack(per_step, 1) for per_step in zip(*weights)],
        )

    def fused(self, vectors: Tensor, attention: SharedAttention, source: EncodedSource) -> Decoded:
        """Return the same for one source, with all that the recurrence allows outside of it."""
        vectors = vectors.transpose(0, 1).contiguous()  # (T, B, D)
        states, weights = attentive_gru(
            self.initial_state([source]),
            query_inputs=self.query_embedding(vectors),
            gate_inputs=self.gates_embedding(vectors),
            keys=source.keys,
            # P and the gates' matrix are linear: applied once per source position, not per step
            gate_values=self.gates_context(source.values),
            padding=source.padding,
            # [W_z; U]: one product with z_{t-1} per step for the query and for the gates
            state_weight=torch.cat([self.query_state.weight, self.gates_state.weight]),
            query_weight=attention.query.weight,
            energy=attention.energy,
        )
        weights = weights.transpose(0, 1)  # (B, T, S)
        return states.transpose(0, 1), weights @ source.values, [weights]

    def readout(
        self, vectors: Tensor, states: Tensor, contexts: Tensor, extra: Optional[Tensor] = None
    ) -> Tensor:
        """Return tanh(W_h z_t + W_e E[y_{t-1}] + W_c c_t + b_r), the logits' input (R, T, O).

        extra: a further term (R, T, O) of the sum, see ``extra_readout_term``.
        """
        total = self.readout_state(states) + self.readout_embedding(vectors)  # (R, T, O)
        return self.readout_of_sum(total + self.readout_context(contexts), extra)

    def readout_of_sum(self, total: Tensor, extra: Optional[Tensor] = None) -> Tensor:
        """Return the readout of the sum inside its tanh; ``extra``: a further term. (R, T, O)."""
        return self.drop(torch.tanh(total if extra is None else total + extra))

    def extra_readout_term(
        self, prev_tokens: Tensor, cache: Optional[Cache] = None
    ) -> Optional[Tensor]:
        """Return what other decoders add to the readout's sum; here None.

        Takes what ``decode`` takes; returns a term (R, T, O), with a cache (R, 1, O).
        """
        return None

    def logits(self, readout: Tensor) -> Tensor:
        """Return (R, T, V) of (R, T, O), the softmax's arguments in Eq. 7."""
        return self.output(readout)


def decode(
    decoder: MultiwayDecoder,
    attention: SharedAttention,
    encoded: List[Tuple[Tensor, Tensor]],
    prev_tokens: Tensor,
    cache: Optional[Cache] = None,
    literal: bool = False,
) -> Tuple[Tensor, List[Tensor]]:
    """Return the readout that predicts the token after each of ``prev_tokens``.

    Args:
        decoder: of the target language.
        attention: the shared one.
        encoded: annotations (B, S, A) and padding (B, S) of each source; more than one source is
            averaged early. Rows of a sentence stand together (R is a multiple of B).
        prev_tokens: (R, T), padded on the right or not at all.
        cache: state of incremental decoding, filled here; only the newest token is then computed,
            and the sources are read at the first step alone.
        literal: step by step instead of ``fused``.

    Returns:
        readout (R, T, O), or (R, 1, O) with a cache; attention over each source (R, T, S).
    """
    if cache is None:
        return decode_all(decoder, attention, encoded, prev_tokens, literal)[1:]
    first = "state" not in cache
    if first:
        for number, (annotations, padding) in enumerate(encoded):
            for name, tensor in attention.prepare(annotations, padding)._asdict().items():
                cache[f"{PER_SENTENCE}{number}_{name}"] = tensor
    sources = _cached(cache)
    if first:
        cache["state"] = per_row(decoder.initial_state(sources), prev_tokens.size(0))
    vectors = decoder.embed(prev_tokens[:, -1:], first)
    if first and len(sources) == 1 and can_merge(vectors):
        cache[VALUES_AND_GATES] = values_and_gates(decoder, sources[0].values)
    before, extra = cast(Tensor, cache["state"]), decoder.extra_readout_term(prev_tokens, cache)
    if VALUES_AND_GATES in cache:
        averaged = cast(Tensor, cache[VALUES_AND_GATES])
        state, of_source, total = search_step(
            decoder, attention, sources[0], averaged, vectors[:, 0], before
        )
        weights, readout = [of_source], decoder.readout_of_sum(total.unsqueeze(1), extra)
    else:
        state, context, weights = decoder.step(vectors[:, 0], before, attention, sources)
        readout = decoder.readout(vectors, state.unsqueeze(1), context.unsqueeze(1), extra)
    cache["state"] = state
    return readout, [source_weights.unsqueeze(1) for source_weights in weights]


def decode_all(
    decoder: MultiwayDecoder,
    attention: SharedAttention,
    encoded: List[Tuple[Tensor, Tensor]],
    prev_tokens: Tensor,
    literal: bool = False,
) -> Tuple[Tensor, Tensor, List[Tensor]]:
    """Return z (R, T, H), then what ``decode`` returns without a cache."""
    sources = [attention.prepare(annotations, padding) for annotations, padding in encoded]
    vectors = decoder.embed(prev_tokens, first=True)
    # the fused loop has one source, with a row for each sentence
    if literal or len(sources) > 1 or prev_tokens.size(0) != sources[0].keys.size(0):
        states, contexts, weights = decoder.literal(vectors, attention, sources)
    else:
        states, contexts, weights = decoder.fused(vectors, attention, sources[0])
    extra = decoder.extra_readout_term(prev_tokens)
    return states, decoder.readout(vectors, states, contexts, extra), weights


def _cached(cache: Cache) -> List[EncodedSource]:
    """Return the sources that the first step has stored."""
    numbers = sum(name.endswith("_keys") for name in cache)
    return [
        EncodedSource(
            *(
                cast(Tensor, cache[f"{PER_SENTENCE}{number}_{name}"])
                for name in EncodedSource._fields
            )
        )
        for number in range(numbers)
    ]
