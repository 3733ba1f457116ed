"""The asymmetric setting of Xia et al. (ICML 2018, Sec. 2.2 and 4): loops over single sentences.

    [z^i z^o z^f z^c]_t = W_a x_{t-1} + U_a h_{t-1} + P E_y^T y + b_a
    i, o, f = sigmoid;  C~ = tanh(z^c);  C_t = f C_{t-1} + i C~;  h_t = o tanh(C_t)        (Eq. 6)
    P(y | x) = softmax(E_y h_T), with y = 0 in the gates                                   (Eq. 2)
    P(x_t | x_<t, y) = softmax(W_o h_t + b_o)                                              (Eq. 3)

x_0 is the end symbol, in both. Legend: T positions, D embedding, H units, V words, L labels.
``params``:
    embedding (V, D), W_a (4H, D), U_a (4H, H), b_a (4H,), whose rows are those of i, o, f, c
    E_y (L, H), P (4H, H), W_o (V, H), b_o (V,)
"""

import math

import numpy as np

from .dual import bigram_log_probability
from .layers import log_softmax
from .recurrent import affine, sigmoid


def random_parameters(words, labels, embed_dim, hidden, rng):
    """Arrays under the names of this module's docstring."""
    shapes = {
        "embedding": (words, embed_dim),
        "W_a": (4 * hidden, embed_dim),
        "U_a": (4 * hidden, hidden),
        "b_a": (4 * hidden,),
        "E_y": (labels, hidden),
        "P": (4 * hidden, hidden),
        "W_o": (words, hidden),
        "b_o": (words,),
    }
    return {name: 0.7 * rng.normal(size=shape) for name, shape in shapes.items()}


def states(inputs, y, params):
    """h_1 .. of the inputs x_0 ..: (T,) words, one-hot y (L,) or None -> (T, H)."""
    hidden = len(params["U_a"][0])
    h, memory, outputs = np.zeros(hidden), np.zeros(hidden), []
    condition = np.zeros(4 * hidden)
    if y is not None:
        condition = affine(affine(y, params["E_y"].T), params["P"])
    for word in inputs:
        z = affine(params["embedding"][word], params["W_a"], params["b_a"])
        z = z + affine(h, params["U_a"]) + condition
        following = np.zeros(hidden)
        for unit in range(hidden):
            i, o, f = (sigmoid(z[gate * hidden + unit]) for gate in range(3))
            memory[unit] = f * memory[unit] + i * math.tanh(z[3 * hidden + unit])
            following[unit] = o * math.tanh(memory[unit])
        h = following
        outputs.append(h)
    return np.array(outputs)


def log_label(text, label, params, end):
    """log P(label | text), Eq. 2; the text without end symbol, T >= 1 words."""
    last = states([end, *text], None, params)[-1]
    return log_softmax(affine(last, params["E_y"]))[label]


def log_words(text, label, params, end):
    """log P of each word of the text and of its end given the label, Eq. 3: (T + 1,)."""
    y = np.eye(len(params["E_y"]))[label]
    outputs = states([end, *text], y, params)
    scores = [log_softmax(affine(h, params["W_o"], params["b_o"])) for h in outputs]
    return np.array([score[word] for score, word in zip(scores, [*text, end])])


def perplexity(pairs, params, end):
    """exp(-sum log P(x|y) / sum N) over (text, label) pairs, N with the end symbol (Sec. 4.2)."""
    logs = [log_words(text, label, params, end) for text, label in pairs]
    return math.exp(-sum(log.sum() for log in logs) / sum(len(log) for log in logs))


def objective(pairs, params, end):
    """sum of -log P(y|x; f) - log P(x|y; g)."""
    return -sum(
        log_label(text, label, params, end) + log_words(text, label, params, end).sum()
        for text, label in pairs
    )


def supervised_losses(pairs, marginals, classifier, generator, end, weight):
    """(loss of f, loss of g), sums over (text, label) pairs: dual supervised learning.

    f: -log P(y|x; f) + weight * l,   g: -log P(x|y; g) + weight * l, with N tokens of x, its end
    one of them, and l = (log P(x) + log P(y|x; f) - log P(y) - log P(x|y; g))^2 / N.

    marginals: the table (V, V) of a bigram model of x, how often each label was seen (L,).
    """
    table, seen = marginals
    losses = [0.0, 0.0]
    for text, label in pairs:
        sentence = [*text, end]
        log_y_x = log_label(text, label, classifier, end)
        log_x_y = log_words(text, label, generator, end).sum()
        joint_by_f = bigram_log_probability(sentence, table) + log_y_x
        joint_by_g = math.log(seen[label] / sum(seen)) + log_x_y
        penalty = weight * (joint_by_f - joint_by_g) ** 2 / len(sentence)
        losses[0] += -log_y_x + penalty
        losses[1] += -log_x_y + penalty
    return losses
