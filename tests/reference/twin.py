"""Twin networks (Serdyuk et al., 2018) as loops over single numbers, one sentence at a time.

A sentence x_1 .. x_T is a list of tokens without the end symbol. Both networks here are simple
recurrent ones, h' = tanh(W e(x) + U h + b) from a zero state, with logits O h + c; each has its own
arrays, NAME being "forward" or "backward":
    NAME.embedding (V, E), NAME.input (D, E), NAME.recurrent (D, D), NAME.bias (D,),
    NAME.output (V, D), NAME.output_bias (V,)
The map g has the arrays map.weight (D, D) and map.bias (D,).

Legend: T tokens, V words, E embedding, D state.
"""

import math

import numpy as np

from .losses import label_smoothed_cross_entropy
from .recurrent import affine, tanh

NO_PADDING = -1


def read(tokens, params, name):
    """The state after each of the ``tokens``: a list of (D,)."""
    state, states = np.zeros(len(params[f"{name}.bias"])), []
    for token in tokens:
        from_word = affine(params[f"{name}.embedding"][token], params[f"{name}.input"])
        from_state = affine(state, params[f"{name}.recurrent"], params[f"{name}.bias"])
        state = tanh(from_word + from_state)
        states.append(state)
    return states


def predictions(sentence, end, backward):
    """[(what has been read, number of the token predicted or None for the end)] of a network.

    The forward network predicts x_t having read end, x_1 .. x_{t-1}, for t = 1 .. T, then the end;
    the backward one x_t having read end, x_T .. x_{t+1}, for t = T .. 1, then the end.
    """
    numbers = list(range(len(sentence)))
    if backward:
        numbers.reverse()
    steps, so_far = [], [end]
    for number in numbers:
        steps.append((list(so_far), number))
        so_far.append(sentence[number])
    return [*steps, (so_far, None)]


def network_states(sentence, end, params, name):
    """{number of the token predicted, None for the end: the state that predicts it}."""
    states = {}
    for so_far, number in predictions(sentence, end, name == "backward"):
        states[number] = read(so_far, params, name)[-1]
    return states


def likelihood(sentence, end, states, params, name, smoothing=0.0):
    """-log P of the tokens and of the end, smoothed and not; states as in ``network_states``."""
    logits, targets = [], []
    for number, state in states.items():
        logits.append(affine(state, params[f"{name}.output"], params[f"{name}.output_bias"]))
        targets.append(end if number is None else sentence[number])
    return label_smoothed_cross_entropy(logits, targets, NO_PADDING, smoothing)[:2]


def distance(mapped, target, kind):
    """L_t of g(h^f_t) and h^b_t, both (D,)."""
    squares = sum((mapped[d] - target[d]) ** 2 for d in range(len(mapped)))
    return squares / len(mapped) if kind == "mse" else math.sqrt(squares)


def penalty(forward, backward, kind, weight=None, bias=None):
    """[L_1 .. L_T] of the states (T, D) of both networks; g is the identity without ``weight``."""
    distances = []
    for state, target in zip(forward, backward):
        mapped = state if weight is None else affine(state, weight, bias)
        distances.append(distance(mapped, target, kind))
    return distances


def stabilising_norm(states):
    """[L_1 .. L_T] = (||h_t|| - ||h_{t-1}||)^2 of h (T, D); L_1 = 0."""
    norms = [math.sqrt(sum(value**2 for value in state)) for state in states]
    changes = [(after - before) ** 2 for before, after in zip(norms, norms[1:])]
    return [0.0, *changes] if norms else []


def objective(sentence, end, params, alpha, kind, learnt, smoothing, targets=None):
    """-log P_f - log P_b + alpha sum_t L_t of one sentence.

    targets: h^b of the penalty, by token (T, D); default: the backward network's present states. To
    differentiate numerically with the gradient stopped, give those of the unchanged parameters.
    """
    forward = network_states(sentence, end, params, "forward")
    backward = network_states(sentence, end, params, "backward")
    total = likelihood(sentence, end, forward, params, "forward", smoothing)[0]
    total += likelihood(sentence, end, backward, params, "backward", smoothing)[0]
    if targets is None:
        targets = matched_targets(sentence, end, params)
    numbers = range(len(sentence))
    g = (params["map.weight"], params["map.bias"]) if learnt else ()
    return total + alpha * sum(penalty([forward[t] for t in numbers], targets, kind, *g))


def matched_targets(sentence, end, params):
    """h^b by token (T, D)."""
    backward = network_states(sentence, end, params, "backward")
    return [backward[t] for t in range(len(sentence))]
