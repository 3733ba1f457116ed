"""Results of a model as what JSON holds: arrays as lists, numbers that are none as null."""

import math
from typing import Any, Dict

import numpy as np

from ...inference.results import Classification, Hypothesis, Perplexity, Score, Translation

DIGITS = 5


def plain(value: Any) -> Any:
    """Return numbers, arrays and what holds them as plain values; NaN and infinities as None."""
    if isinstance(value, np.ndarray):
        rounded = value.astype(float).round(DIGITS)
        return plain(rounded.tolist()) if not np.isfinite(rounded).all() else rounded.tolist()
    if isinstance(value, dict):
        return {name: plain(entry) for name, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(entry) for entry in value]
    if isinstance(value, float):
        return round(value, DIGITS) if math.isfinite(value) else None
    return value


def of_hypothesis(hypothesis: Hypothesis) -> Dict[str, Any]:
    """Return a hypothesis."""
    return {
        "text": hypothesis.text,
        "tokens": hypothesis.tokens,
        "score": plain(hypothesis.score),
        "token_scores": plain(hypothesis.token_scores),
        "attention": plain(hypothesis.attention),
        "extras": plain(hypothesis.extras),
    }


def of_translation(result: Translation) -> Dict[str, Any]:
    """Return the translations of a sentence."""
    return {
        "source": plain(result.source),
        "source_tokens": result.source_tokens,
        "hypotheses": [of_hypothesis(hypothesis) for hypothesis in result.hypotheses],
        "error": result.error,
    }


def of_score(result: Score, attention: bool) -> Dict[str, Any]:
    """Return the score of a translation, with its attention where it is asked for."""
    return {
        "source": plain(result.source),
        "target": result.target,
        "tokens": result.tokens,
        "score": plain(result.score),
        "token_scores": plain(result.token_scores),
        "attention": plain(result.attention) if attention else None,
        "error": result.error,
    }


def of_classification(result: Classification) -> Dict[str, Any]:
    """Return the labels of a text."""
    return {
        "source": result.source,
        "label": result.label,
        "probabilities": plain(result.probabilities),
        "tokens": result.tokens,
        "attention": plain(result.attention),
        "error": result.error,
    }


def of_perplexity(result: Perplexity) -> Dict[str, Any]:
    """Return the perplexity of a text."""
    return {
        "source": result.source,
        "perplexity": plain(result.perplexity),
        "tokens": result.tokens,
        "score": plain(result.score),
        "token_scores": plain(result.token_scores),
        "extras": plain(result.extras),
        "error": result.error,
    }
