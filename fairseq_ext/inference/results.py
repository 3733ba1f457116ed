"""What a model says of a sentence. Scores are those that fairseq prints: logarithms in base 2.

Dimensions: S source tokens, T target tokens, the end symbol among both.
"""

from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional

import numpy as np


@dataclass(frozen=True)
class Hypothesis:
    """A translation.

    Attributes:
        text: as fairseq-interactive prints it after D-.
        tokens: sub-words, the end symbol last.
        score: as after H-, by default the mean of the token scores.
        token_scores: log2 P of each token, as after P-.
        attention: (T, S), rows that add up to one, or None for a model without attention over the
            source tokens. Routed: to less, since the task token, the first, has a weight of 0.
        extras: what the system adds: see docs/python.md.
    """

    text: str
    tokens: List[str]
    score: float
    token_scores: List[float]
    # no part of the repr, which would be hundreds of lines of numbers
    attention: Optional[np.ndarray] = field(default=None, repr=False)
    extras: Dict[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Translation:
    """The translations of a sentence, the best first.

    Attributes:
        source: the sentence as it was given; a tuple for several sources, such as "de+fr-en".
        source_tokens: what the model read, S of them; empty for recordings and images.
        hypotheses: at least one. A sentence that cannot be translated has an empty one with score
            -inf, as in fairseq-interactive.
        error: why it cannot be translated, or None.
    """

    source: Any
    source_tokens: List[str]
    hypotheses: List[Hypothesis]
    error: Optional[str] = None

    @property
    def text(self) -> str:
        """Return the text of the best hypothesis."""
        return self.hypotheses[0].text


@dataclass(frozen=True)
class Score:
    """What a model thinks of a translation that it was given.

    Attributes:
        source, target: as they were given.
        tokens: sub-words of the target, the end symbol last.
        score: as after H- with fairseq-generate --score-reference.
        token_scores, attention: as of a hypothesis.
        error: why it cannot be scored, or None; then the score is -inf.
    """

    source: Any
    target: str
    tokens: List[str]
    score: float
    token_scores: List[float]
    attention: Optional[np.ndarray] = field(default=None, repr=False)
    error: Optional[str] = None


@dataclass(frozen=True)
class Classification:
    """The label of a text.

    Attributes:
        source: the text as it was given.
        label: the most probable one; empty where the text cannot be classified.
        probabilities: {label: probability}, the most probable first.
        tokens: the words that the model read, S of them.
        attention: {"s": (S,), "p": (S,)}, the weights of the words in both embeddings of a
            duo_classifier; None for other models.
        error: why it cannot be classified, or None.
    """

    source: str
    label: str
    probabilities: Dict[str, float]
    tokens: List[str] = field(default_factory=list)
    attention: Optional[Dict[str, np.ndarray]] = field(default=None, repr=False)
    error: Optional[str] = None


@dataclass(frozen=True)
class Perplexity:
    """What a language model thinks of a text.

    Attributes:
        source: the text as it was given.
        perplexity: 2 to the power of minus the score.
        tokens: the words that the model read, the end symbol last.
        score: the mean of the token scores.
        token_scores: log2 P of each token.
        error: why there is none, or None; then the score is -inf.
        extras: "twin_distance" of a model that kept its backward network: L_t of each token, NaN
            for the last.
    """

    source: str
    perplexity: float
    tokens: List[str]
    score: float
    token_scores: List[float]
    error: Optional[str] = None
    extras: Dict[str, Any] = field(default_factory=dict, repr=False)
