"""Labels of texts.

Dimensions: S words of a text.
"""

import math
from typing import Dict, List, Optional, Sequence

import numpy as np
import torch

from ..compat.generation.line_translator import Answer, Line, LineTranslator
from ..duo.classifier.model import DuoClassifierModel
from .inputs import Input
from .results import Classification
from .translations import source_tokens


class Classifications:
    """Makes results of a classifier's answers.

    translator: of the classifier; its answers hold all labels.
    """

    def __init__(self, translator: LineTranslator):
        self.translator = translator

    def of(self, inputs: Sequence[Input]) -> List[Classification]:
        """Return the labels of the inputs, in their order."""
        lines = [Line(number, entry.line) for number, entry in enumerate(inputs)]
        answers = self.translator.answers(lines)
        return [self._of(entry.original, answer) for entry, answer in zip(inputs, answers)]

    def _of(self, original: str, answer: Answer) -> Classification:
        """Return the result of a text."""
        if answer.error is not None:
            return Classification(original, "", {}, [], None, answer.error)
        probabilities = {
            self.translator.hypothesis_text(answer, hypothesis): math.exp(hypothesis["score"])
            for hypothesis in answer.hypotheses
        }
        label = next(iter(probabilities))
        tokens = source_tokens(self.translator, answer.tokens)
        return Classification(original, label, probabilities, tokens, self._attention(answer))

    def _attention(self, answer: Answer) -> Optional[Dict[str, np.ndarray]]:
        """Return the weights of the words in both embeddings; of several models the mean."""
        real = answer.tokens.ne(self.translator.source_dictionary.pad())
        tokens = answer.tokens[real].unsqueeze(0)
        of_models = []
        for model in self.translator.models:
            weights = None
            if isinstance(model, DuoClassifierModel):
                with torch.no_grad():
                    weights = model.classifier.attention(tokens)
            if weights is None:
                return None
            of_models.append(torch.stack([part[0].float() for part in weights]))  # (2, S)
        mean = torch.stack(of_models).mean(dim=0).cpu().numpy()
        return {"s": mean[0], "p": mean[1]}
