"""The Duo Transformer and the Duo classifier (arXiv 2003.01371) for single sentences.

Streams are numbered: 0 is S, 1 is P. In a layer (Eq. 4 - 6), MultiHead(queries, keys, values)::

    A_S = MultiHead(x_P, x_P, x_S);  A_P = MultiHead(x_S, x_S, x_P)
    crossed (Eq. 6):  x_S' = LN(x_S + A_P), x_P' = LN(x_P + A_S);  otherwise  LN(x_z + A_z)

Legend: T, S positions, D width of the states, W_z width of embedding z, V words. ``params`` maps
names to arrays, z being 0 or 1:
    SIDE.embedding.z (V, W_z), SIDE.adapter.z (D, W_z) unless W_z is D; SIDE encoder or decoder
    SIDE.N.{self,context}.z.{query,key,value,output}.{weight,bias}; no value where K and V share
    SIDE.N.{self,context}_norm.z.{weight,bias}, SIDE.N.{inner,outer,ffn_norm}.{weight,bias}
    fuse (D, N D), project (D, W_S + W_P), with the fusion layer
"""

import math

import numpy as np

from . import layers
from .losses import negative_log_likelihood


class Shape:
    """Sizes and the four additions; ``widths`` has one entry per stream."""

    def __init__(self, embed_dim, ffn_dim, heads, depth, widths, share_kv, norm, fusion):
        self.embed_dim, self.ffn_dim, self.heads, self.depth = embed_dim, ffn_dim, heads, depth
        self.widths, self.share_kv, self.norm, self.fusion = widths, share_kv, norm, fusion

    def crossed(self, side):
        return self.norm == "all" or self.norm == side


def random_parameters(shape, words, rng):
    """Arrays under the names of this module's docstring; norms and biases are random as well."""
    width, params = shape.embed_dim, {}

    def matrix(name, outputs, inputs):
        params[name] = rng.normal(size=(outputs, inputs)) * inputs**-0.5

    def add_linear(name, outputs, inputs):
        matrix(name + ".weight", outputs, inputs)
        params[name + ".bias"] = rng.normal(size=outputs) * 0.3

    def add_norm(name):
        params[name + ".weight"] = 1 + 0.3 * rng.normal(size=width)
        params[name + ".bias"] = 0.3 * rng.normal(size=width)

    for side in ("encoder", "decoder"):
        for z, size in enumerate(shape.widths):
            params[f"{side}.embedding.{z}"] = rng.normal(size=(words, size)) * size**-0.5
            if size != width:
                matrix(f"{side}.adapter.{z}", width, size)
        for number in range(shape.depth):
            layer = f"{side}.{number}"
            for kind in ("self",) if side == "encoder" else ("self", "context"):
                for z in range(len(shape.widths)):
                    for role in ("query", "key", "output", "value")[: 3 if shape.share_kv else 4]:
                        add_linear(f"{layer}.{kind}.{z}.{role}", width, width)
                    add_norm(f"{layer}.{kind}_norm.{z}")
            add_linear(f"{layer}.inner", shape.ffn_dim, width)
            add_linear(f"{layer}.outer", width, shape.ffn_dim)
            add_norm(f"{layer}.ffn_norm")
    if shape.fusion:
        matrix("fuse", width, len(shape.widths) * width)
        matrix("project", width, sum(shape.widths))
    return params


def multi_head(query, key, value, allowed, heads):
    """softmax(q k^T / sqrt(d)) v of mapped (T, D), (S, D), (S, D), heads side by side -> (T, D)."""
    width = query.shape[1] // heads
    mixed = np.zeros_like(query)
    for head in range(heads):
        part = slice(head * width, (head + 1) * width)
        for t in range(len(query)):
            scores = [
                np.dot(query[t, part], key[s, part]) / math.sqrt(width)
                if allowed[t, s]
                else -math.inf
                for s in range(len(key))
            ]
            for s, weight in enumerate(layers.softmax(scores)):
                mixed[t, part] += weight * value[s, part]
    return mixed


def attention(states, memory, allowed, shape, params, name):
    """Eq. 4 and 5: [A_S, A_P] of streams (T, D) that look at streams (S, D)."""
    outputs = []
    for z in range(len(states)):
        other = 1 - z if len(states) == 2 else z
        values = "key" if shape.share_kv else "value"
        mixed = multi_head(
            layers.named_linear(states[other], params, f"{name}.{other}.query"),
            layers.named_linear(memory[other], params, f"{name}.{other}.key"),
            layers.named_linear(memory[z], params, f"{name}.{z}.{values}"),
            allowed,
            shape.heads,
        )
        outputs.append(layers.named_linear(mixed, params, f"{name}.{z}.output"))
    return outputs


def normalised(states, changes, crossed, params, name):
    """Eq. 6 where ``crossed``, otherwise LN(x_z + A_z)."""
    if crossed:
        changes = [changes[len(states) - 1 - z] for z in range(len(states))]
    return [
        layers.layer_norm(states[z] + changes[z], params, f"{name}.{z}") for z in range(len(states))
    ]


def run_layer(states, padding, memory, memory_padding, side, shape, params, name):
    """One layer of the encoder (``memory`` None) or decoder: streams (T, D) -> streams (T, D)."""
    crossed = shape.crossed(side)
    allowed = layers.visibility(len(states[0]), padding, causal=memory is not None)
    changes = attention(states, states, allowed, shape, params, name + ".self")
    states = normalised(states, changes, crossed, params, name + ".self_norm")
    if memory is not None:
        allowed = layers.visibility(len(states[0]), memory_padding, causal=False)
        changes = attention(states, memory, allowed, shape, params, name + ".context")
        states = normalised(states, changes, crossed, params, name + ".context_norm")
    return [
        layers.layer_norm(x + layers.feed_forward(x, params, name), params, name + ".ffn_norm")
        for x in states
    ]


def embed(tokens, side, shape, params, padding_index):
    """sqrt(D) W_z E_z[token] + sinusoid(position), for each stream; rows of padding are zero."""
    vectors = []
    for z in range(len(shape.widths)):
        table = params[f"{side}.embedding.{z}"]
        if f"{side}.adapter.{z}" in params:
            table = layers.linear(table, params[f"{side}.adapter.{z}"])
        vectors.append(layers.embed(tokens, table, padding_index))
    return vectors


def run(tokens, memory, memory_padding, side, shape, params, padding_index):
    """Embeddings and all layers of a side: (T,) -> streams (T, D)."""
    padding = [token == padding_index for token in tokens]
    states = embed(tokens, side, shape, params, padding_index)
    for number in range(shape.depth):
        name = f"{side}.{number}"
        states = run_layer(states, padding, memory, memory_padding, side, shape, params, name)
    return states


def encode(tokens, shape, params, padding_index):
    """(S,) -> streams (S, D), padding (S,)."""
    states = run(tokens, None, None, "encoder", shape, params, padding_index)
    return states, [token == padding_index for token in tokens]


def logits(states, shape, params):
    """Fusion and tied output matrix: streams (T, D) -> (T, V)."""
    tables = [params[f"decoder.embedding.{z}"] for z in range(len(shape.widths))]
    if shape.fusion:
        matrix = layers.linear(np.concatenate(tables, axis=1), params["project"])  # (V, D)
        return layers.linear(layers.linear(np.concatenate(states, axis=1), params["fuse"]), matrix)
    if "decoder.adapter.0" in params:
        tables[0] = layers.linear(tables[0], params["decoder.adapter.0"])
    return layers.linear(sum(states) / len(states), tables[0])


def translate(source, prev_tokens, shape, params, padding_index):
    """Logits (T, V)."""
    memory, padding = encode(source, shape, params, padding_index)
    states = run(prev_tokens, memory, padding, "decoder", shape, params, padding_index)
    return logits(states, shape, params)


def loss(source, target, shape, params, padding_index):
    """-log P(target | source); the target ends with the end symbol."""
    prev_tokens = np.array([target[-1], *target[:-1]])
    scores = translate(source, prev_tokens, shape, params, padding_index)
    return negative_log_likelihood(scores, target, padding_index)[0]


# ---------------------------------------------------------------- classifier


def weighted_sum(scores, vectors, linear):
    """sum_t score_t vector_t (linear) or sum_t softmax(score)_t vector_t; (T,), (T, d) -> (d,)."""
    weights = scores if linear else layers.softmax(scores)
    total = np.zeros(vectors.shape[1])
    for weight, vector in zip(weights, vectors):
        total += weight * vector
    return total


def sentence(s, p, params, linear):
    """Eq. 1 - 3: s (T, d1), p (T, d2) -> e (F,); W_O is stored transposed, (F, d2 + d1)."""
    a_p = weighted_sum([np.dot(params["w_s"], row) for row in s], p, linear)  # (d2,)
    a_s = weighted_sum([np.dot(params["w_p"], row) for row in p], s, linear)  # (d1,)
    return params["w_o"] @ np.concatenate([a_p, a_s])


def meta(s, p, method):
    """The two matrices that Eq. 1 - 3 are given, for each way to make one set of two."""
    if method == "duo":
        return s, p
    if method == "single":
        return s, s
    if method == "concatenation":
        both = np.concatenate([s, p], axis=1)
        return both, both
    width = max(s.shape[1], p.shape[1])
    mean = np.zeros((len(s), width))  # the narrower set is filled up with zeros
    mean[:, : s.shape[1]] += s / 2
    mean[:, : p.shape[1]] += p / 2
    return mean, mean


def classify(tokens, params, method, linear):
    """Log probabilities (L,) of the labels of one text (T,)."""
    s, p = (params[name][tokens] if name in params else None for name in ("S", "P"))
    if method == "mean-mlp":
        words = np.concatenate([s, p], axis=1) if p is not None else s
        inner = params["inner.weight"] @ words.mean(axis=0) + params["inner.bias"]
        scores = params["outer.weight"] @ np.maximum(0.0, inner) + params["outer.bias"]
    else:
        scores = params["w_y"] @ sentence(*meta(s, p, method), params, linear)
    return layers.log_softmax(scores)
