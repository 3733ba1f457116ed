"""Gated recurrent units (Cho et al., 2014) as loops over single numbers, one sentence at a time.

The variant is the one with the reset gate after the recurrent product, as in cuDNN and torch:

    r = sigmoid(W_r x + b_r + U_r h)                                             reset gate
    u = sigmoid(W_u x + b_u + U_u h)                                             update gate
    n = tanh(W_n x + b_n + r * (U_n h))                                          candidate
    h' = u * h + (1 - u) * n

Legend: T positions, I width of the inputs, H hidden width, E embedding width, V words.
``params`` maps names to arrays, ``name`` is a prefix in it; a GRU's arrays are
    NAME.input.weight (3H, I), NAME.input.bias (3H), NAME.recurrent.weight (3H, H)
whose rows are those of r, then u, then n.
"""

import math

import numpy as np


def sigmoid(value):
    """Of one number; no overflow for large ones of either sign."""
    if value >= 0:
        return 1 / (1 + math.exp(-value))
    return math.exp(value) / (1 + math.exp(value))


def affine(vector, weight, bias=None):
    """y[o] = sum_i weight[o, i] x[i] + bias[o]; vector (I,), weight (O, I) -> (O,)."""
    outputs = np.zeros(len(weight))
    for o in range(len(weight)):
        outputs[o] = np.dot(weight[o], vector)
        if bias is not None:
            outputs[o] += bias[o]
    return outputs


def tanh(vector):
    """Of each number of a vector."""
    return np.array([math.tanh(value) for value in vector])


def random_gru(inputs, hidden, rng, params, name):
    """Adds the arrays of a GRU to ``params``; biases are random as well."""
    params[name + ".input.weight"] = rng.normal(size=(3 * hidden, inputs)) * inputs**-0.5
    params[name + ".input.bias"] = 0.5 * rng.normal(size=3 * hidden)
    params[name + ".recurrent.weight"] = rng.normal(size=(3 * hidden, hidden)) * hidden**-0.5


def gru_cell(x, h, params, name):
    """One step: input x (I,) and state h (H,) -> the next state (H,)."""
    hidden = len(h)
    from_input = affine(x, params[name + ".input.weight"], params[name + ".input.bias"])  # (3H,)
    from_state = affine(h, params[name + ".recurrent.weight"])  # (3H,)
    following = np.zeros(hidden)
    for i in range(hidden):
        reset_gate = sigmoid(from_input[i] + from_state[i])
        update_gate = sigmoid(from_input[hidden + i] + from_state[hidden + i])
        candidate = math.tanh(from_input[2 * hidden + i] + reset_gate * from_state[2 * hidden + i])
        following[i] = update_gate * h[i] + (1 - update_gate) * candidate
    return following


def gru(inputs, initial, params, name):
    """The states after each input: (T, I), initial (H,) -> (T, H)."""
    state, states = initial, []
    for x in inputs:
        state = gru_cell(x, state, params, name)
        states.append(state)
    return np.array(states)


def bidirectional_gru(inputs, params, name):
    """[forward_t ; backward_t] at each position, both from zero states: (T, I) -> (T, 2H).

    forward_t has read inputs 1..t, backward_t inputs T..t. Arrays: NAME.forward, NAME.backward.
    """
    hidden = params[name + ".forward.recurrent.weight"].shape[1]
    forward = gru(inputs, np.zeros(hidden), params, name + ".forward")  # (T, H)
    backward = gru(inputs[::-1], np.zeros(hidden), params, name + ".backward")[::-1]  # (T, H)
    return np.array([[*ahead, *behind] for ahead, behind in zip(forward, backward)])


def random_language_model(words, embed_dim, hidden, rng):
    """Arrays ``embedding`` (V, E), ``gru`` and ``output`` (V, H), (V,) of a GRU language model."""
    params = {"embedding": rng.normal(size=(words, embed_dim))}
    random_gru(embed_dim, hidden, rng, params, "gru")
    params["output.weight"] = rng.normal(size=(words, hidden)) * hidden**-0.5
    params["output.bias"] = 0.5 * rng.normal(size=words)
    return params


def language_model_states(target, params, end_index):
    """The state that predicts each token of ``target``: (T,) -> (T, H).

    The state at t has read the end symbol and the target's tokens before t; it starts at zero.
    """
    previous = [end_index, *target[:-1]]
    inputs = [params["embedding"][token] for token in previous]
    hidden = params["gru.recurrent.weight"].shape[1]
    return gru(inputs, np.zeros(hidden), params, "gru")


def language_model_logits(target, params, end_index):
    """Scores of every word at each position of ``target``: (T,) -> (T, V)."""
    states = language_model_states(target, params, end_index)
    return np.array([affine(s, params["output.weight"], params["output.bias"]) for s in states])
