"""The parts of a Transformer as loops over single numbers (Vaswani et al., 2017).

Legend: T positions of the sequence, S positions of the attended sequence, D embedding width,
F width of the feed-forward layer, H heads, d = D / H width of a head, V words.
One sentence at a time; ``params`` maps names to arrays, ``name`` is a prefix in it.
"""

import math

import numpy as np

LAYER_NORM_EPSILON = 1e-5


def linear(inputs, weight, bias=None):
    """y[t, o] = sum_i weight[o, i] x[t, i] + bias[o];  inputs (T, I), weight (O, I) -> (T, O)."""
    outputs = np.zeros((inputs.shape[0], weight.shape[0]))  # (T, O)
    for t in range(inputs.shape[0]):
        for o in range(weight.shape[0]):
            outputs[t, o] = np.dot(weight[o], inputs[t])
            if bias is not None:
                outputs[t, o] += bias[o]
    return outputs


def named_linear(inputs, params, name):
    """The linear map whose weight and bias are stored under ``name``."""
    return linear(inputs, params[name + ".weight"], params[name + ".bias"])


def softmax(scores):
    """Of one list of scores (S,); minus infinity means weight zero."""
    highest = max(scores)
    weights = [math.exp(score - highest) if score > -math.inf else 0.0 for score in scores]
    total = sum(weights)
    return np.array([weight / total for weight in weights])


def log_softmax(scores):
    """Of one list of finite scores (V,)."""
    highest = max(scores)
    total = sum(math.exp(score - highest) for score in scores)
    return np.array([score - highest - math.log(total) for score in scores])


def layer_norm(inputs, params, name):
    """Each position (row of (T, D)) is centred, scaled to variance one, then mapped affinely."""
    gain, bias = params[name + ".weight"], params[name + ".bias"]
    outputs = np.zeros_like(inputs)
    for t, row in enumerate(inputs):
        mean = sum(row) / len(row)
        variance = sum((value - mean) ** 2 for value in row) / len(row)
        for i, value in enumerate(row):
            normalised = (value - mean) / math.sqrt(variance + LAYER_NORM_EPSILON)
            outputs[t, i] = gain[i] * normalised + bias[i]
    return outputs


def visibility(queries, keys_padding, causal):
    """(T, S) booleans: may position t look at position s?

    Padding is never looked at; a causal sequence does not look at positions after its own.
    """
    allowed = np.zeros((queries, len(keys_padding)), dtype=bool)
    for t in range(queries):
        for s, is_padding in enumerate(keys_padding):
            allowed[t, s] = not is_padding and not (causal and s > t)
    return allowed


def attention(queries, keys, allowed, params, name, heads):
    """Multi-head scaled dot-product attention: softmax(q k^T / sqrt(d)) v, heads side by side.

    queries (T, D), keys (S, D) which are the values too, allowed (T, S) -> (T, D). A position that
    may look at nothing gets what the output map makes of zeros.
    """
    q = named_linear(queries, params, name + ".query")  # (T, D)
    k = named_linear(keys, params, name + ".key")  # (S, D)
    v = named_linear(keys, params, name + ".value")  # (S, D)
    width = q.shape[1] // heads
    mixed = np.zeros_like(q)  # (T, D)
    for head in range(heads):
        part = slice(head * width, (head + 1) * width)
        for t in range(q.shape[0]):
            if not allowed[t].any():
                continue
            scores = [
                np.dot(q[t, part], k[s, part]) / math.sqrt(width) if allowed[t, s] else -math.inf
                for s in range(k.shape[0])
            ]
            for s, weight in enumerate(softmax(scores)):
                mixed[t, part] += weight * v[s, part]
    return named_linear(mixed, params, name + ".output")


def feed_forward(inputs, params, name):
    """W_2 max(0, W_1 x + b_1) + b_2 at each position; (T, D) -> (T, F) -> (T, D)."""
    hidden = named_linear(inputs, params, name + ".inner")  # (T, F)
    for t in range(hidden.shape[0]):
        for i in range(hidden.shape[1]):
            hidden[t, i] = max(0.0, hidden[t, i])
    return named_linear(hidden, params, name + ".outer")


def with_residual(inputs, layer, params, norm_name, normalize_before):
    """Residual connection and layer norm around ``layer``.

    Post-norm (the paper): LN(x + layer(x)); pre-norm: x + layer(LN(x)).
    """
    if normalize_before:
        return inputs + layer(layer_norm(inputs, params, norm_name))
    return layer_norm(inputs + layer(inputs), params, norm_name)


def position_numbers(tokens, padding_index):
    """Real tokens are counted from ``padding_index + 1``; padding has ``padding_index``."""
    numbers, count = [], 0
    for token in tokens:
        if token == padding_index:
            numbers.append(padding_index)
        else:
            count += 1
            numbers.append(padding_index + count)
    return numbers


def sinusoid(number, width):
    """Sines in the first half, cosines in the second; wave i has frequency 10000^(-i/(D/2-1))."""
    half = width // 2
    vector = np.zeros(width)
    for i in range(half):
        angle = number * math.exp(-i * math.log(10000) / (half - 1))
        vector[i] = math.sin(angle)
        vector[half + i] = math.cos(angle)
    return vector


def embed(tokens, embedding, padding_index):
    """sqrt(D) * E[token] + sinusoid(position); rows of padding are zero.  (T,) -> (T, D)."""
    width = embedding.shape[1]
    vectors = np.zeros((len(tokens), width))  # (T, D)
    for t, number in enumerate(position_numbers(tokens, padding_index)):
        if tokens[t] != padding_index:
            vectors[t] = math.sqrt(width) * embedding[tokens[t]] + sinusoid(number, width)
    return vectors
