"""Objectives over one sentence. Legend: T positions, V words."""

from .layers import log_softmax


def negative_log_likelihood(logits, targets, padding_index):
    """-log P of the real targets; logits (T, V), targets (T,) -> (sum, count)."""
    total, count = 0.0, 0
    for scores, target in zip(logits, targets):
        if target != padding_index:
            total -= log_softmax(scores)[target]
            count += 1
    return total, count


def label_smoothed_cross_entropy(logits, targets, padding_index, smoothing):
    """Cross entropy with ``smoothing`` (epsilon) of the mass taken from the true word.

    Every one of the V - 1 other words gets e = epsilon / (V - 1), the true one 1 - epsilon:
    loss = -(1 - epsilon) log p[target] - e * sum over the others of log p.
    logits (T, V), targets (T,) -> (smoothed sum, plain sum, count).
    """
    smoothed, plain, count = 0.0, 0.0, 0
    for scores, target in zip(logits, targets):
        if target == padding_index:
            continue
        log_probs = log_softmax(scores)
        others = smoothing / (len(log_probs) - 1)
        for word, log_prob in enumerate(log_probs):
            smoothed -= log_prob * ((1 - smoothing) if word == target else others)
        plain -= log_probs[target]
        count += 1
    return smoothed, plain, count
