"""Attentive LSTM decoders of speech and captions as loops over single numbers.

Speech: Chorowski et al. (2015), Bahdanau et al. (2016). Captions: Vinyals et al. (2015), Xu et al.
(2015). One sentence at a time. Legend: F frames, S positions of the source, P positions of an
image, D features, C annotations, T steps, E embedding, H units, A attention, N filters, V words.

An LSTM (the variant without peepholes), its gates' rows in the order i, f, c, o:

    m' = sigmoid(f) m + sigmoid(i) tanh(c);   h' = sigmoid(o) tanh(m')

``params`` maps names to arrays; ``name`` is a prefix in it.
"""

import math

import numpy as np

from .layers import softmax
from .recurrent import affine, sigmoid, tanh


def lstm_cell(gates, memory):
    """The arguments of the gates (4H,) and m (H,) -> h', m'."""
    units = len(memory)
    state, following = np.zeros(units), np.zeros(units)
    for n in range(units):
        i, f, c, o = (gates[part * units + n] for part in range(4))
        following[n] = sigmoid(f) * memory[n] + sigmoid(i) * math.tanh(c)
        state[n] = sigmoid(o) * math.tanh(following[n])
    return state, following


def lstm(inputs, params, name):
    """h after each input, from zero: (T, I) -> (T, H)."""
    from_input, from_state = params[name + ".weight_ih_l0"], params[name + ".weight_hh_l0"]
    bias = params[name + ".bias_ih_l0"]
    state = memory = np.zeros(from_state.shape[1])
    states = []
    for vector in inputs:
        gates = affine(vector, from_input, bias) + affine(state, from_state)
        state, memory = lstm_cell(gates, memory)
        states.append(state)
    return np.array(states)


def bidirectional_lstm(inputs, params, name):
    """[forward_t ; backward_t], both from zero: (T, I) -> (T, 2H)."""
    ahead = lstm(inputs, params, f"{name}.forwards")
    behind = lstm(inputs[::-1], params, f"{name}.backwards")[::-1]
    return np.array([[*left, *right] for left, right in zip(ahead, behind)])


def speech_encoder(frames, params, reductions):
    """Layer l reads every r_l-th state below it, in both directions: (F, D) -> (S, 2G)."""
    states = frames
    for number, reduction in enumerate(reductions):
        below = np.array([row for t, row in enumerate(states) if t % reduction == 0])
        states = bidirectional_lstm(below, params, f"layers.{number}")
    return states


def location_features(weights, filters):
    """f[s, n] = sum_k filters[n, k] a[s + k - w], w the middle; beyond the ends a is zero."""
    middle = filters.shape[1] // 2
    features = np.zeros((len(weights), len(filters)))
    for s in range(len(weights)):
        for n in range(len(filters)):
            for k in range(filters.shape[1]):
                if 0 <= s + k - middle < len(weights):
                    features[s, n] += filters[n, k] * weights[s + k - middle]
    return features


def attention(state, before, annotations, params, seen):
    """The weights a (S,) and the context z (C,) for a state.

    before: the weights of the step before (S,). seen: positions that may be looked at.
    """
    features = None
    if "layer.filters" in params:
        features = location_features(before, params["layer.filters"][:, 0])
    query = affine(state, params["layer.query.weight"])
    scores = []
    for s, annotation in enumerate(annotations):
        inside = affine(annotation, params["layer.key.weight"], params["layer.key.bias"]) + query
        if features is not None:
            inside = inside + affine(features[s], params["layer.location.weight"])
        energy = sum(params["layer.energy"][a] * math.tanh(inside[a]) for a in range(len(inside)))
        scores.append(energy if s in seen else -math.inf)
    weights = softmax(scores)
    return weights, sum(weight * row for weight, row in zip(weights, annotations))


def attentive_step(vector, context, state, memory, params):
    """LSTM([vector ; context], state)."""
    gates = affine(vector, params["layer.gates_input.weight"], params["layer.gates_input.bias"])
    gates = gates + affine(context, params["layer.gates_context.weight"])
    gates = gates + affine(state, params["layer.gates_state.weight"])
    return lstm_cell(gates, memory)


def inputs_of(target, params, end_index):
    """Embeddings of the end symbol and of the target without its last token."""
    return [params["embedding.weight"][token] for token in [end_index, *target[:-1]]]


def speech_decoder(target, annotations, params, end_index, window=None):
    """Scores, states and attention at each character: (T, V), (T, H), (T, S).

    window: (first, slowest, fastest): character j from 0 sees the positions from slowest * j to
    first + fastest * j, and in any case one.
    """
    length, context = len(annotations), np.zeros(annotations.shape[1])
    state = memory = np.zeros(params["layer.gates_state.weight"].shape[1])
    weights = np.array([1.0] + [0.0] * (length - 1))
    logits, states, looks = [], [], []
    for j, vector in enumerate(inputs_of(target, params, end_index)):
        state, memory = attentive_step(vector, context, state, memory, params)
        seen = range(length)
        if window:
            first, slowest, fastest = window
            begin = min(math.floor(slowest * j), length - 1)
            seen = range(begin, max(begin + 1, math.ceil(first + fastest * j)))
        weights, context = attention(state, weights, annotations, params, seen)
        mixed = affine(state, params["readout_state.weight"], params["readout_state.bias"])
        mixed = tanh(mixed + affine(context, params["readout_context.weight"]))
        logits.append(affine(mixed, params["output.weight"], params["output.bias"]))
        states.append(state)
        looks.append(weights)
    return np.array(logits), np.array(states), np.array(looks)


def plain_caption(target, features, params, end_index):
    """Show and Tell: scores and states at each word, (T, V), (T, H)."""
    image = affine(features.mean(axis=0), params["image.weight"], params["image.bias"])
    words = inputs_of(target, params, end_index)
    states = lstm([image, *words], params, "layer")[1:]
    outputs = [affine(s, params["output.weight"], params["output.bias"]) for s in states]
    return np.array(outputs), states


def attentive_caption(target, features, params, end_index):
    """Show, Attend and Tell: scores, states and attention at each word."""
    image = features.mean(axis=0)
    state, memory = (
        tanh(affine(image, params[f"initial_{name}.weight"], params[f"initial_{name}.bias"]))
        for name in ("state", "memory")
    )
    logits, states, looks = [], [], []
    for vector in inputs_of(target, params, end_index):
        everywhere = range(len(features))
        weights, context = attention(state, None, features, params, everywhere)
        state, memory = attentive_step(vector, context, state, memory, params)
        mixed = vector + affine(state, params["readout_state.weight"])
        mixed = mixed + affine(context, params["readout_context.weight"])
        logits.append(affine(mixed, params["output.weight"], params["output.bias"]))
        states.append(state)
        looks.append(weights)
    return np.array(logits), np.array(states), np.array(looks)
