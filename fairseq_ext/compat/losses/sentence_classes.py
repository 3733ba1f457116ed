"""Classes and numbers that BART and RoBERTa predict of sentences (sentence_prediction)."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

from ..patch_registry import PatchedModule, patch
from ..user_errors import OptionError

if TYPE_CHECKING:
    from fairseq.data import Dictionary
    from torch import Tensor

# {module of fairseq: its criterion}
CRITERIA = {
    "fairseq.criterions.sentence_prediction": "SentencePredictionCriterion",
    "fairseq.criterions.sentence_prediction_adapters": "SentencePredictionCriterionAdapters",
}
# what sentence_prediction logs in nats, or in squared errors
LOSSES = ("loss", "mha_reg_loss", "ffn_reg_loss")


def features_of_ends(features: Tensor, tokens: Tensor, dictionary: Dictionary) -> Tensor:
    """Return the features, (B, D), of the last </s> of each line, or of its last token.

    Args:
        features: (B, T, D).
        tokens: (B, T); a line that was shortened may have no </s>.
        dictionary: of the tokens.
    """
    import torch

    places = torch.arange(tokens.size(1), device=tokens.device)  # (T,)
    last_end = places.masked_fill(tokens.ne(dictionary.eos()), -1).amax(dim=1)  # (B)
    last_token = places.masked_fill(tokens.eq(dictionary.pad()), -1).amax(dim=1)
    last = last_end.where(last_end >= 0, last_token)
    return features[torch.arange(len(last), device=last.device), last]


@patch(
    "fairseq.models.bart.model",
    because="fairseq 0.12.2: BART classifies a sentence by another of its symbols, or ends in a "
    "RuntimeError, where sentences of a batch have different numbers of </s>, as shortened ones do",
)
def sentences_have_their_own_end(module: PatchedModule) -> None:
    """Give the head the features of the last </s> of each sentence."""
    model = module.BARTModel
    stock = model.forward

    @functools.wraps(stock)
    def forward(
        self: Any,
        src_tokens: Tensor,
        src_lengths: Tensor | None,
        prev_output_tokens: Tensor,
        features_only: bool = False,
        classification_head_name: str | None = None,
        *more: Any,
        **named: Any,
    ) -> Any:
        inputs = (src_tokens, src_lengths, prev_output_tokens)
        if classification_head_name not in self.classification_heads:
            return stock(self, *inputs, features_only, classification_head_name, *more, **named)
        x, extra = stock(self, *inputs, True, None, *more, **named)
        ends = features_of_ends(x, src_tokens, self.encoder.dictionary)
        return self.classification_heads[classification_head_name](ends), extra

    model.forward = forward


@patch(
    "fairseq.models.bart.hub_interface",
    because="fairseq 0.12.2: predict of BART classifies a sentence by another of its symbols where "
    "sentences of a batch have different numbers of </s>",
)
def pairs_have_their_own_end(module: PatchedModule) -> None:
    """The same for `predict`."""

    def predict(self: Any, head: str, tokens: Tensor, return_logits: bool = False) -> Tensor:
        """Return the logarithm of the probability of each class, or its logit, (B, C)."""
        tokens = tokens.unsqueeze(0) if tokens.dim() == 1 else tokens
        features = self.extract_features(tokens.to(device=self.device))
        ends = features_of_ends(features, tokens.to(features.device), self.task.source_dictionary)
        logits: Tensor = self.model.classification_heads[head](ends)
        return logits if return_logits else logits.log_softmax(dim=-1)

    module.BARTHubInterface.predict = predict


@patch(
    "fairseq.criterions.sentence_prediction",
    because="fairseq 0.12.2: sentence_prediction with --regression-target logs the squared error "
    "divided by ln 2, as if it were in nats",
)
def squared_errors_are_logged(module: PatchedModule) -> None:
    """Log squared errors as they are: only batches of classes count what is correct."""
    criterion = module.SentencePredictionCriterion
    stock = criterion.reduce_metrics

    @functools.wraps(stock)
    def reduce_metrics(logging_outputs: list[dict[str, Any]]) -> None:
        if not any("ncorrect" in log for log in logging_outputs):
            # stock divides by ln 2
            logging_outputs = [
                {name: part * math.log(2) if name in LOSSES else part for name, part in log.items()}
                for log in logging_outputs
            ]
        stock(logging_outputs)

    criterion.reduce_metrics = staticmethod(reduce_metrics)


@patch(
    *CRITERIA,
    because="fairseq 0.12.2: sentence_prediction with a label outside of --num-classes ends in an "
    "IndexError",
)
def labels_are_of_the_classes(module: PatchedModule) -> None:
    """Name the label, and the number of classes."""
    criterion = getattr(module, CRITERIA[module.__name__])
    stock = criterion.forward

    @functools.wraps(stock)
    def forward(self: Any, model: Any, sample: dict[str, Any], reduce: bool = True) -> Any:
        try:
            return stock(self, model, sample, reduce)
        except IndexError as error:
            labels, classes = sample.get("target"), getattr(self.task.cfg, "num_classes", None)
            if self.regression_target or labels is None or classes is None:
                raise
            outside = labels[labels.lt(0) | labels.ge(classes)].tolist()
            if not outside:
                raise
            raise OptionError(_label_outside(self.task, outside[0], classes)) from error

    criterion.forward = forward


def _label_outside(task: Any, label: int, classes: int) -> str:
    """Return the message for a label, counted from 0, that is none of the classes."""
    words = task.label_dictionary
    text = words[label + words.nspecial]
    if label < 0:
        return f"the label {text} is not in the dictionary label/dict.txt; allowed: its words"
    return (
        f"--num-classes {classes}: the label {text!r} is number {label + 1} of label/dict.txt; "
        f"allowed: at least {label + 1}"
    )
