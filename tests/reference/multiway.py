"""Multi-way translation with one attention (Firat et al., NAACL 2016), one sentence at a time.

    encoder:        h_i = W_adp [fwd_i ; bwd_i] + b_adp                                      (Eq. 9)
    attention:      e_i = v . tanh( tanh(L_enc h_i + b) + L_dec d_t )                   (Eq. 10, 12)
                    d_t = tanh(W_y E[y_{t-1}] + W_z z_{t-1}),  alpha = softmax(e)            (Eq. 3)
                    c_t = P (sum_i alpha_i h_i) + b_P                                (Eq. 4, f_adp)
    decoder:        z_t = GRU([E[y_{t-1}] ; c_t], z_{t-1})
                    z_0 = tanh(U V tanh(W h_1) + c)                                         (Eq. 11)
    readout:        o_t = tanh(W_h z_t + W_e E[y_{t-1}] + W_c c_t + b), logits W_o o_t + b_o (Eq. 7)

E[y_0] is the zero vector. The encoder belongs to the source language; W_y, W_z, the GRU, U, c and
the readout belong to the target language; L_enc, b, L_dec, v, P, b_P, W and V exist once.

Deep fusion (Gulcehre et al., 2015, Sec. 4.2) adds a language model's state s_t to the readout:

    g_t = sigmoid(v_g . s_t + b_g),   o_t = tanh(W_h z_t + W_e E + W_c c_t + b + g_t W_lm s_t)

Several sources (Firat et al., 2016b, Sec. 3.2): early averaging takes the mean of the sources'
c_t and of their z_0 and goes on with one state; late averaging runs a decoder for each source and
takes the mean of the probabilities.

Legend: S source positions, T target positions, E embedding width, H hidden width, A annotations,
K attention, C context, I, J the initialiser's two layers, R readout, L language model, V words.
Dictionaries of arrays:
    encoder: embedding (V, E), gru.{forward,backward} (recurrent.py), adapt.weight (A, 2H), .bias
    shared: attention.encoder.weight (K, A), .bias; attention.decoder.weight (K, K);
        attention.score (K,); context.weight (C, A), .bias; init.hidden (I, A); init.output (J, I)
    decoder: embedding (V, E); query.embedding (K, E), query.state (K, H); gru with inputs E + C;
        init.weight (H, J), .bias; readout.{state,embedding,context} (R, H|E|C), readout.bias;
        output.weight (V, R), .bias; of deep fusion: fusion.weight (R, L), fusion.gate (L,) and
        fusion.bias (1,)
"""

import math

import numpy as np

from .layers import log_softmax, softmax
from .recurrent import (
    affine,
    bidirectional_gru,
    gru_cell,
    language_model_states,
    random_gru,
    sigmoid,
    tanh,
)


def _random_matrix(rng, outputs, inputs):
    return rng.normal(size=(outputs, inputs)) * inputs**-0.5


class Shape:
    """The widths that all components of a model agree on; letters of this module's docstring."""

    def __init__(self, annotation, attention, context, init_hidden, init_output, readout):
        self.annotation = annotation
        self.attention = attention
        self.context = context
        self.init_hidden = init_hidden
        self.init_output = init_output
        self.readout = readout


def random_encoder(words, embed_dim, hidden, shape, rng):
    """Arrays of one source language."""
    params = {"embedding": rng.normal(size=(words, embed_dim))}
    for side in ("forward", "backward"):
        random_gru(embed_dim, hidden, rng, params, "gru." + side)
    params["adapt.weight"] = _random_matrix(rng, shape.annotation, 2 * hidden)
    params["adapt.bias"] = 0.5 * rng.normal(size=shape.annotation)
    return params


def random_shared(shape, rng):
    """Arrays of the shared attention, f_adp and initialiser."""
    return {
        "attention.encoder.weight": _random_matrix(rng, shape.attention, shape.annotation),
        "attention.encoder.bias": 0.5 * rng.normal(size=shape.attention),
        "attention.decoder.weight": _random_matrix(rng, shape.attention, shape.attention),
        "attention.score": 2 * rng.normal(size=shape.attention),
        "context.weight": _random_matrix(rng, shape.context, shape.annotation),
        "context.bias": 0.5 * rng.normal(size=shape.context),
        "init.hidden": _random_matrix(rng, shape.init_hidden, shape.annotation),
        "init.output": _random_matrix(rng, shape.init_output, shape.init_hidden),
    }


def random_decoder(words, embed_dim, hidden, shape, rng):
    """Arrays of one target language."""
    params = {"embedding": rng.normal(size=(words, embed_dim))}
    params["query.embedding"] = _random_matrix(rng, shape.attention, embed_dim)
    params["query.state"] = _random_matrix(rng, shape.attention, hidden)
    random_gru(embed_dim + shape.context, hidden, rng, params, "gru")
    params["init.weight"] = _random_matrix(rng, hidden, shape.init_output)
    params["init.bias"] = 0.5 * rng.normal(size=hidden)
    for part, width in (("state", hidden), ("embedding", embed_dim), ("context", shape.context)):
        params["readout." + part] = _random_matrix(rng, shape.readout, width)
    params["readout.bias"] = 0.5 * rng.normal(size=shape.readout)
    params["output.weight"] = _random_matrix(rng, words, shape.readout)
    params["output.bias"] = 0.5 * rng.normal(size=words)
    return params


def random_fusion(lm_hidden, shape, rng):
    """What deep fusion adds to a decoder's arrays."""
    return {
        "fusion.weight": _random_matrix(rng, shape.readout, lm_hidden),
        "fusion.gate": rng.normal(size=lm_hidden),
        "fusion.bias": rng.normal(size=1),
    }


def encode(tokens, encoder):
    """Eq. 9: (S,) -> annotations h (S, A)."""
    inputs = [encoder["embedding"][token] for token in tokens]
    both = bidirectional_gru(inputs, encoder, "gru")  # (S, 2H)
    return np.array([affine(row, encoder["adapt.weight"], encoder["adapt.bias"]) for row in both])


def convolutions(inputs, params, name):
    """Residual filters of width 3, nothing beyond the ends: (S, E) -> v (S, C).

    v^l_i = v^{l-1}_i + tanh(sum_k F^l_k v^{l-1}_{i+k} + b^l), k = -1, 0, 1; F^l is (C, C, 3).
    """
    weight, bias = params[name + ".project.weight"], params[name + ".project.bias"]
    values = [affine(vector, weight, bias) for vector in inputs]
    layer = 0
    while f"{name}.filters.{layer}.weight" in params:
        filters = params[f"{name}.filters.{layer}.weight"]
        sums = []
        for i in range(len(values)):
            total = np.array(params[f"{name}.filters.{layer}.bias"])
            for k in (-1, 0, 1):
                if 0 <= i + k < len(values):
                    total += affine(values[i + k], filters[:, :, k + 1])
            sums.append(total)
        values = [before + tanh(total) for before, total in zip(values, sums)]
        layer += 1
    return np.array(values)


def query(previous, state, decoder):
    """Eq. 12: d_t = tanh(W_y E[y_{t-1}] + W_z z_{t-1}); (E,), (H,) -> (K,)."""
    return tanh(
        affine(previous, decoder["query.embedding"]) + affine(state, decoder["query.state"])
    )


def attention_weights(annotations, query, shared):
    """Eq. 10, 3: alpha of the annotations (S, A) for the query d_t (K,) -> (S,)."""
    from_decoder = affine(query, shared["attention.decoder.weight"])  # (K,)
    scores = []
    for h in annotations:
        key = tanh(affine(h, shared["attention.encoder.weight"], shared["attention.encoder.bias"]))
        score = 0.0
        for k, weight in enumerate(shared["attention.score"]):
            score += weight * math.tanh(key[k] + from_decoder[k])
        scores.append(score)
    return softmax(scores)


def context(annotations, weights, shared):
    """Eq. 4 and f_adp: c_t = P (sum_i alpha_i h_i) + b_P; (S, A), (S,) -> (C,)."""
    mixed = np.zeros(annotations.shape[1])
    for weight, h in zip(weights, annotations):
        for a, value in enumerate(h):
            mixed[a] += weight * value
    return affine(mixed, shared["context.weight"], shared["context.bias"])


def initial_state(annotations, shared, decoder):
    """Eq. 11: z_0 = tanh(U V tanh(W h_1) + c); (S, A) -> (H,)."""
    hidden = tanh(affine(annotations[0], shared["init.hidden"]))  # (I,)
    common = affine(hidden, shared["init.output"])  # (J,)
    return tanh(affine(common, decoder["init.weight"], decoder["init.bias"]))


def previous_embedding(target, t, decoder):
    """E[y_{t-1}] (E,): the zero vector for the first token of the target."""
    if t == 0:
        return np.zeros(decoder["embedding"].shape[1])
    return decoder["embedding"][target[t - 1]]


def step(previous, state, contexts_of, decoder):
    """The decoder's next state and what it read: E[y_{t-1}] (E,), z_{t-1} (H,) -> z_t, c_t.

    contexts_of: function of d_t that gives c_t (C,).
    """
    c = contexts_of(query(previous, state, decoder))
    return gru_cell(np.array([*previous, *c]), state, decoder, "gru"), c


def readout(previous, state, c, decoder, lm_state=None):
    """Eq. 7 before its normalisation; with ``lm_state`` s_t (L,) that of deep fusion -> (V,)."""
    total = affine(state, decoder["readout.state"], decoder["readout.bias"])
    total += affine(previous, decoder["readout.embedding"])
    total += affine(c, decoder["readout.context"])
    if lm_state is not None:
        gate = sigmoid(np.dot(decoder["fusion.gate"], lm_state) + decoder["fusion.bias"][0])
        total += gate * affine(lm_state, decoder["fusion.weight"])
    return affine(tanh(total), decoder["output.weight"], decoder["output.bias"])


def decode(annotations_of_sources, target, shared, decoder, lm_states=None):
    """Teacher-forced logits (T, V) and states (T, H) of ``target`` (T,).

    annotations_of_sources: one (S, A) for each source; several are averaged early.
    lm_states: (T, L) of deep fusion's language model, or None.
    """
    sources = annotations_of_sources
    starts = [initial_state(annotations, shared, decoder) for annotations in sources]
    state = sum(starts) / len(starts)

    def mean_context(query):
        contexts = []
        for annotations in sources:
            weights = attention_weights(annotations, query, shared)
            contexts.append(context(annotations, weights, shared))
        return sum(contexts) / len(contexts)

    logits, states = [], []
    for t in range(len(target)):
        previous = previous_embedding(target, t, decoder)
        state, c = step(previous, state, mean_context, decoder)
        lm_state = None if lm_states is None else lm_states[t]
        logits.append(readout(previous, state, c, decoder, lm_state))
        states.append(state)
    return np.array(logits), np.array(states)


def translate(source, target, encoder, shared, decoder):
    """Logits (T, V) of the target (T,) given the source (S,)."""
    return decode([encode(source, encoder)], target, shared, decoder)[0]


def log_likelihood(logits, target):
    """Eq. 8 of one sentence: sum_t log p(y_t | y_<t, X)."""
    return sum(log_softmax(scores)[token] for scores, token in zip(logits, target))


def early_average(sources, target, encoders, shared, decoder):
    """Logits (T, V) of one decoder that reads the mean of its sources."""
    annotations = [encode(source, encoder) for source, encoder in zip(sources, encoders)]
    return decode(annotations, target, shared, decoder)[0]


def late_average(sources, target, encoders, shared, decoder):
    """Log-probabilities (T, V): the log of the mean of what each source alone predicts."""
    mean = np.zeros((len(target), len(decoder["output.bias"])))
    for source, encoder in zip(sources, encoders):
        logits = translate(source, target, encoder, shared, decoder)
        mean += np.array([softmax(scores) for scores in logits]) / len(sources)
    return np.log(mean)


def fused_translate(source, target, encoder, shared, decoder, language_model, end_index):
    """Logits (T, V) of deep fusion; ``decoder`` holds the arrays of ``random_fusion`` too."""
    lm_states = language_model_states(target, language_model, end_index)
    return decode([encode(source, encoder)], target, shared, decoder, lm_states)[0]
