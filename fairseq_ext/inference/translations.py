"""Answers of the search -> results: texts, tokens, scores, attention, and what systems add.

Dimensions: S source tokens, T target tokens, the end symbol among both.
"""

import math
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Sequence

import numpy as np
import torch
from torch import Tensor

from ..compat.generation.line_translator import Answer, Line, LineTranslator
from .extras import dual_terms, teacher_forced_extras
from .inputs import EMPTY, Input, with_words
from .results import Hypothesis, Translation
from .teacher_forcing import align_whole_targets, aligns_whole_targets

if TYPE_CHECKING:  # model.py imports this file
    from .model import Model


class Translations:
    """Makes results of a model's searches.

    Args:
        model: of one direction.
        translator: of the search.
        attention, extras: whether the hypotheses have them.
    """

    def __init__(self, model: "Model", translator: LineTranslator, attention: bool, extras: bool):
        self.model, self.translator = model, translator
        self.attention, self.extras = attention, extras

    def of(self, inputs: Sequence[Input]) -> List[Translation]:
        """Return the translations of the inputs, in their order."""
        if self.model.kind == "translation":
            inputs = [with_words(entry, len(self.model.sources)) for entry in inputs]
        lines = [Line(n, entry.line) for n, entry in enumerate(inputs) if entry.error is None]
        translated = self.translator.answers(lines)
        answers = {answer.line.number: self._with_words(answer) for answer in translated}
        more: Dict[int, List[Dict[str, Any]]] = {}
        done = [answer for answer in answers.values() if answer.error is None]
        if self.attention and aligns_whole_targets(self.translator):
            align_whole_targets(self.translator, done)
        if self.extras:
            more = teacher_forced_extras(self.model, self.translator, done)
        results = []
        for number, entry in enumerate(inputs):
            answer = answers.get(number)
            error = entry.error if answer is None else answer.error
            if answer is None or error is not None:
                empty = Hypothesis("", [], -math.inf, [])
                results.append(Translation(entry.original, [], [empty], error))
            else:
                results.append(self._translation(entry.original, answer, more.get(number)))
        return results

    def _with_words(self, answer: Answer) -> Answer:
        """Return an answer; an error for a text that its sub-word model leaves nothing of."""
        is_empty = answer.source is not None and not answer.source.words
        if is_empty and self.model.kind == "translation":
            return Answer(answer.line, EMPTY)
        return answer

    def _translation(
        self, original: Any, answer: Answer, more: Optional[List[Dict[str, Any]]]
    ) -> Translation:
        """Return the result of a sentence; more: the extras of each hypothesis."""
        hypotheses = [
            self._hypothesis(answer, hypothesis, more[rank] if more else {})
            for rank, hypothesis in enumerate(answer.hypotheses)
        ]
        return Translation(original, source_tokens(self.translator, answer.tokens), hypotheses)

    def _hypothesis(
        self, answer: Answer, hypothesis: Dict[str, Any], more: Dict[str, Any]
    ) -> Hypothesis:
        """Return a hypothesis of fairseq's as one of ours."""
        text = self.translator.decode(self.translator.hypothesis_text(answer, hypothesis))
        dictionary = self.translator.target_dictionary
        attention = None
        if self.attention:
            weights, pad = hypothesis.get("attention"), dictionary.pad()
            attention = unpadded_attention(weights, answer.tokens, pad)
        extras = {**(dual_terms(hypothesis) if self.extras else {}), **more}
        return Hypothesis(
            text,
            [dictionary[index] for index in hypothesis["tokens"].tolist()],
            float(hypothesis["score"]) / math.log(2),
            (hypothesis["positional_scores"].float() / math.log(2)).tolist(),
            attention,
            extras,
        )


def source_tokens(translator: LineTranslator, tokens: Tensor) -> List[str]:
    """Return what the model read of a source (S,), with padding; none where it is no text."""
    dictionary = translator.source_dictionary
    if dictionary is None:
        return []
    indices = tokens[tokens.ne(dictionary.pad())].tolist()
    # several sources stand one after the other, each up to its end symbol
    several = list(getattr(dictionary, "dictionaries", [dictionary]))
    words, place = [], 0
    for index in indices:
        words.append(several[min(place, len(several) - 1)][index])
        place += index == dictionary.eos()
    return words


def unpadded_attention(weights: Optional[Tensor], tokens: Tensor, pad: int) -> Optional[np.ndarray]:
    """Return the attention (T, S) without padding.

    Args:
        weights: (S', T), S' with padding; None or empty for a model without.
        tokens: of the source (S',), or features.
        pad: its padding.
    """
    if weights is None or not weights.numel():
        return None
    rows = weights.t().float().cpu()  # (T, S')
    if tokens.is_floating_point():
        # states of an encoder of recordings or images: those of padding have no weight
        used = torch.nonzero(rows.gt(0).any(dim=0)).flatten()
        return rows[:, : int(used.max()) + 1].numpy() if len(used) else rows.numpy()
    real = tokens.ne(pad).cpu()
    if rows.size(1) != len(real):
        return rows.numpy()
    return rows[:, real].numpy()
