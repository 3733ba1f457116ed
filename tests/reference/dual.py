"""Model-level dual learning (Xia et al., ICML 2018, Sec. 2.1 and 3.1) for single sentences.

One component per language. In the encoding role its context is null and the whole sentence is
visible; in the decoding role its context is the other component's output and position t sees
positions up to t. A block is Eq. 4 (encoding) or Eq. 5 (decoding):

    x~ = phi_c1(x),   h = phi_c2(x~ + phi_z(x~, C)),   phi_z(x~, null) = 0

with a residual connection and a layer norm around each of phi_c1, phi_z and phi_c2, where with a
null context the whole phi_z step is absent. Where the blocks normalise before (pre-norm), the sum
that leaves the stack was never normalised, so one more layer norm follows, in both roles the same.

Legend: T, S positions, D embedding width, V words. ``params`` maps names to arrays:
    embedding (V, D) and softmax (V, D), the same array where tied
    blocks.N.{self,context}.{query,key,value,output}.{weight,bias}
    blocks.N.{inner,outer}.{weight,bias}
    blocks.N.{self,context,ffn}_norm.{weight,bias}
    last_norm.{weight,bias} (pre-norm only)
"""

import numpy as np

from . import layers
from .losses import label_smoothed_cross_entropy, negative_log_likelihood


class Shape:
    """The sizes of a component; ``normalize_before`` chooses pre-norm."""

    def __init__(self, embed_dim, ffn_dim, heads, layers, normalize_before=False):
        self.embed_dim = embed_dim
        self.ffn_dim = ffn_dim
        self.heads = heads
        self.layers = layers
        self.normalize_before = normalize_before


def random_parameters(shape, words, rng):
    """Arrays under the names of this module's docstring; norms and biases are random as well."""
    width, params = shape.embed_dim, {}
    params["embedding"] = rng.normal(size=(words, width)) * width**-0.5
    params["softmax"] = params["embedding"]

    def add_linear(name, outputs, inputs):
        params[name + ".weight"] = rng.normal(size=(outputs, inputs)) * inputs**-0.5
        params[name + ".bias"] = rng.normal(size=outputs) * 0.3

    def add_norm(name):
        params[name + ".weight"] = 1 + 0.3 * rng.normal(size=width)
        params[name + ".bias"] = 0.3 * rng.normal(size=width)

    for number in range(shape.layers):
        block = f"blocks.{number}"
        for kind in ("self", "context"):
            for role in ("query", "key", "value", "output"):
                add_linear(f"{block}.{kind}.{role}", width, width)
        add_linear(f"{block}.inner", shape.ffn_dim, width)
        add_linear(f"{block}.outer", width, shape.ffn_dim)
        for kind in ("self", "context", "ffn"):
            add_norm(f"{block}.{kind}_norm")
    if shape.normalize_before:
        add_norm("last_norm")
    return params


def block(states, padding, context, context_padding, causal, shape, params, name):
    """Eq. 4 where ``context`` is None, Eq. 5 otherwise.

    states (T, D), padding T booleans, context (S, D), context_padding S booleans -> (T, D).
    """
    before = shape.normalize_before
    seen = layers.visibility(len(states), padding, causal)  # (T, T)

    def phi_c1(x):
        return layers.attention(x, x, seen, params, name + ".self", shape.heads)

    def phi_z(x):
        open_keys = layers.visibility(len(x), context_padding, causal=False)  # (T, S)
        return layers.attention(x, context, open_keys, params, name + ".context", shape.heads)

    def phi_c2(x):
        return layers.feed_forward(x, params, name)

    states = layers.with_residual(states, phi_c1, params, name + ".self_norm", before)
    if context is not None:
        states = layers.with_residual(states, phi_z, params, name + ".context_norm", before)
    return layers.with_residual(states, phi_c2, params, name + ".ffn_norm", before)


def run_blocks(tokens, context, context_padding, causal, shape, params, padding_index):
    """Embeds ``tokens`` (T,) and applies all blocks -> (T, D)."""
    padding = [token == padding_index for token in tokens]
    states = layers.embed(tokens, params["embedding"], padding_index)
    for number in range(shape.layers):
        name = f"blocks.{number}"
        states = block(states, padding, context, context_padding, causal, shape, params, name)
    if shape.normalize_before:
        states = layers.layer_norm(states, params, "last_norm")
    return states


def encode(tokens, shape, params, padding_index):
    """The encoding role: (T,) -> states (T, D), padding (T,)."""
    states = run_blocks(tokens, None, None, False, shape, params, padding_index)
    return states, [token == padding_index for token in tokens]


def decode(prev_tokens, context, context_padding, shape, params, padding_index):
    """The decoding role: (T,) and the other component's (S, D), (S,) -> states (T, D)."""
    return run_blocks(prev_tokens, context, context_padding, True, shape, params, padding_index)


def logits(states, params):
    """phi_h before its normalisation: (T, D) -> (T, V)."""
    return layers.linear(states, params["softmax"])


def translate(source, prev_tokens, reader, writer, shape, padding_index):
    """Logits of one model: the parameters ``reader`` encode, ``writer`` decode -> (T, V).

    The primal model f is reader X, writer Y; the dual model g is reader Y, writer X.
    """
    context, context_padding = encode(source, shape, reader, padding_index)
    states = decode(prev_tokens, context, context_padding, shape, writer, padding_index)
    return logits(states, writer)


def shifted(sentence, end_index):
    """What the decoder is fed: the end symbol first, the sentence's own last token dropped."""
    return np.array([end_index, *sentence[:-1]])


def pair_loss(x, y, params_x, params_y, shape, padding_index):
    """-log P(y|x; f) - log P(x|y; g) of one pair; both sentences end with the end symbol."""
    total = 0.0
    for source, target, reader, writer in ((x, y, params_x, params_y), (y, x, params_y, params_x)):
        prev_tokens = shifted(target, target[-1])
        scores = translate(source, prev_tokens, reader, writer, shape, padding_index)
        total += negative_log_likelihood(scores, target, padding_index)[0]
    return total


def log_likelihood(source, target, reader, writer, shape, padding_index):
    """log P(target | source) of the model reader -> writer, the end symbol included."""
    prev_tokens = shifted(target, target[-1])
    scores = translate(source, prev_tokens, reader, writer, shape, padding_index)
    return -negative_log_likelihood(scores, target, padding_index)[0]


def dual_objective(log_y_x, y_tokens, log_x_y, x_tokens, alpha, by_token):
    """alpha * l_f(x, y) + (1 - alpha) * l_g(x, y), Eq. 7, which the best y minimises.

    l_f = -log P(y|x; f), l_g = -log P(x|y; g); divided by the number of tokens where by_token.
    """
    primal_loss, dual_loss = -log_y_x, -log_x_y
    if by_token:
        primal_loss, dual_loss = primal_loss / y_tokens, dual_loss / x_tokens
    return alpha * primal_loss + (1 - alpha) * dual_loss


def duality_loss(log_x, log_y_x, log_y, log_x_y):
    """(log P(x) + log P(y|x; f) - log P(y) - log P(x|y; g))^2, dual supervised learning."""
    joint_by_f = log_x + log_y_x
    joint_by_g = log_y + log_x_y
    return (joint_by_f - joint_by_g) ** 2


def bigram_log_probability(sentence, table):
    """log P of a sentence (T,) that ends with the end symbol, by a model that sees one word.

    table (V, V): row u holds the scores of the words after u; before the first is the end symbol.
    """
    total, before = 0.0, sentence[-1]
    for word in sentence:
        total += layers.log_softmax(table[before])[word]
        before = word
    return total


def dual_supervised_loss(pairs, tables, params, shape, padding_index, smoothing, weight):
    """Sum over the pairs (x, y) of both smoothed losses and weight * duality_loss.

    tables: the bigram models of x and of y; params: the components of x and of y.
    """
    total = 0.0
    for x, y in pairs:
        logs = []
        for source, target, reader, writer in ((x, y, *params), (y, x, *params[::-1])):
            prev_tokens = shifted(target, target[-1])
            scores = translate(source, prev_tokens, reader, writer, shape, padding_index)
            smoothed, plain, _ = label_smoothed_cross_entropy(
                scores, target, padding_index, smoothing
            )
            total += smoothed
            logs.append(-plain)
        log_x, log_y = (bigram_log_probability(side, table) for side, table in zip((x, y), tables))
        total += weight * duality_loss(log_x, logs[0], log_y, logs[1])
    return total
