"""Recurrent units with shared blocks and a router (Zaremoodi et al., ACL 2018), one sentence.

Sec. 2.1, the router, at each step:

    s_t = tanh(W_x x_t + W_h h_{t-1} + b_s)          tau_t = softmax(W_tau s_t + b_tau)
    shared block i reads tau_t[i] x_t, the task's block reads x_t
    h_t = [sum_i tau_t[i] h_t^(i) ; h_t^(task)]

Sec. 2.2, each block, with the reset gate that the printed candidate lacks:

    z = sigmoid(W_z x + U_z h + b_z)                 r = sigmoid(W_r x + U_r h + b_r)
    c = tanh(W_h x + U_h (r * h) + b_h)              h' = z * h + (1 - z) * c

The model around it (the authors' base system): annotations [forward ; backward] of the unit, the
first decoder state tanh(W mean), additive attention whose query is the decoder's last state,
decoder input [E y_{t-1} ; c_t], logits O tanh(h_t + Q c_t + P E y_{t-1}) + b_o.

Legend: S source positions, T target positions, I input, H units of a block, n shared blocks,
O state of the unit (2H; H without shared blocks), E embedding, C annotation, A attention, V words.
Dictionaries of arrays:
    unit: shared: list of n blocks; task: one block; router (only where n > 0)
    block: W_z, W_r, W_h (H, I), U_z, U_r, U_h (H, H), b_z, b_r, b_h (H,)
    router: W_x (R, I), W_h (R, O), b_s (R,), W_tau (n, R), b_tau (n,)
    encoder: embedding (V, E), layers: list of {forward: unit, backward: unit}
    decoder: embedding (V, E), layers: list of units, initial (sum O, C), key.weight (A, C),
        key.bias (A,), query (A, sum O), energy (A,), Q (O, C), P (O, E),
        output.weight (V, O), output.bias (V,)
"""

import math

import numpy as np

from .layers import softmax
from .recurrent import affine, sigmoid, tanh


def router(x, previous, params):
    """Sec. 2.1: x_t (I,) and h_{t-1} (O,) -> tau_t (n,)."""
    s = tanh(affine(x, params["W_x"], params["b_s"]) + affine(previous, params["W_h"]))
    return softmax(affine(s, params["W_tau"], params["b_tau"]))


def block(x, h, params):
    """Sec. 2.2: a block's input x~ (I,) and its own state (H,) -> its next state (H,)."""
    update_inputs = affine(x, params["W_z"], params["b_z"]) + affine(h, params["U_z"])
    reset_inputs = affine(x, params["W_r"], params["b_r"]) + affine(h, params["U_r"])
    remembered = np.zeros(len(h))
    for i, value in enumerate(h):
        remembered[i] = sigmoid(reset_inputs[i]) * value
    candidate = tanh(affine(x, params["W_h"], params["b_h"]) + affine(remembered, params["U_h"]))
    following = np.zeros(len(h))
    for i, value in enumerate(h):
        z = sigmoid(update_inputs[i])
        following[i] = z * value + (1 - z) * candidate[i]
    return following


def start(h, params):
    """The blocks' states that make up h_0 (O,): each shared block has the first half."""
    shared = len(params["shared"])
    if not shared:
        return [], h
    units = len(h) // 2
    return [h[:units]] * shared, h[units:]


def step(x, h, shared, task, params):
    """One step of the unit: x_t (I,), h_{t-1} (O,), the blocks' states -> the same after, tau."""
    task_state = block(x, task, params["task"])
    if not params["shared"]:
        return task_state, [], task_state, np.zeros(0)
    tau = router(x, h, params["router"])
    following, mixed = [], np.zeros(len(task_state))
    for i, state in enumerate(shared):
        following.append(block(tau[i] * x, state, params["shared"][i]))
        for j, value in enumerate(following[i]):
            mixed[j] += tau[i] * value
    return np.array([*mixed, *task_state]), following, task_state, tau


def unit(inputs, initial, params):
    """All steps: inputs (S, I), h_0 (O,) -> states (S, O), tau (S, n)."""
    h = initial
    shared, task = start(h, params)
    states, weights = [], []
    for x in inputs:
        h, shared, task, tau = step(x, h, shared, task, params)
        states.append(h)
        weights.append(tau)
    return np.array(states), np.array(weights)


def state_size(params):
    """O of a unit."""
    return len(params["task"]["b_z"]) * (2 if params["shared"] else 1)


def bidirectional(inputs, params):
    """[forward_s ; backward_s] (S, 2O), from zero states; backward_s has read the inputs S..s."""
    ahead, _ = unit(inputs, np.zeros(state_size(params["forward"])), params["forward"])
    behind, _ = unit(inputs[::-1], np.zeros(state_size(params["backward"])), params["backward"])
    return np.array([[*left, *right] for left, right in zip(ahead, behind[::-1])])


def encode(tokens, encoder):
    """(S,) -> annotations (S, C) of the top layer."""
    inputs = np.array([encoder["embedding"][token] for token in tokens])
    for layer in encoder["layers"]:
        inputs = bidirectional(inputs, layer)
    return inputs


def initial_state(annotations, decoder):
    """tanh(W mean_i a_i) (sum O,)."""
    mean = np.zeros(annotations.shape[1])
    for annotation in annotations:
        for c, value in enumerate(annotation):
            mean[c] += value / len(annotations)
    return tanh(affine(mean, decoder["initial"]))


def attend(annotations, h, decoder):
    """alpha (S,) and the context c (C,) for the decoder's last state (sum O,)."""
    projected, scores = affine(h, decoder["query"]), []
    for annotation in annotations:
        key = affine(annotation, decoder["key.weight"], decoder["key.bias"])
        scores.append(
            sum(v * math.tanh(key[i] + projected[i]) for i, v in enumerate(decoder["energy"]))
        )
    weights, context = softmax(scores), np.zeros(annotations.shape[1])
    for weight, annotation in zip(weights, annotations):
        for c, value in enumerate(annotation):
            context[c] += weight * value
    return weights, context


def decode_step(previous, states, annotations, decoder):
    """E y_{t-1} (E,), the state of every layer (h, shared, task) -> logits (V,), states after."""
    h = np.array([value for state in states for value in state[0]])
    _, context = attend(annotations, h, decoder)
    x, following = np.array([*previous, *context]), []
    for state, params in zip(states, decoder["layers"]):
        *after, _ = step(x, *state, params)
        following.append(tuple(after))
        x = after[0]
    total = x + affine(context, decoder["Q"]) + affine(previous, decoder["P"])
    return affine(tanh(total), decoder["output.weight"], decoder["output.bias"]), following


def decode(annotations, prev_tokens, decoder):
    """Teacher-forced logits (T, V)."""
    first, states = initial_state(annotations, decoder), []
    for params in decoder["layers"]:
        h, first = first[: state_size(params)], first[state_size(params) :]
        states.append((h, *start(h, params)))
    logits = []
    for token in prev_tokens:
        scores, states = decode_step(decoder["embedding"][token], states, annotations, decoder)
        logits.append(scores)
    return np.array(logits)


def translate(source, prev_tokens, encoder, decoder):
    """Logits (T, V) of one task: tokens (S,), whose first is the task's, and (T,)."""
    return decode(encode(source, encoder), prev_tokens, decoder)
