"""The side of a pair that holds labels: checks of its data and options, and its search.

Dimensions: B texts, L labels, N entries of the labels' dictionary.
"""

from typing import Any, Dict, List, Optional, Sequence

import torch
from fairseq.criterions import FairseqCriterion
from fairseq.data import Dictionary, LanguagePairDataset
from fairseq.models import BaseFairseqModel
from torch import Tensor

from ...common.ensembles import mean_log_probs
from ...common.labels import check_labels, check_texts, labels
from ...streams.language_pair import LanguagePair


class LabelSide:
    """One of the two sides of a model that classifies texts and writes texts of a class.

    Args:
        lang: the side of the labels; the other side is of texts.
        dictionary: of the labels.
    """

    def __init__(self, lang: str, dictionary: Dictionary):
        self.lang, self.dictionary = lang, dictionary

    def check_bleu(self, eval_bleu: bool) -> None:
        """Raise ValueError for --eval-bleu in training."""
        if eval_bleu:
            raise ValueError(
                "--eval-bleu: labels are single words, whose BLEU is 0; allowed: leave it out, "
                f"dual_label_cross_entropy logs the {self.lang}s' error"
            )

    def check_criterion(self, criterion: FairseqCriterion) -> None:
        """Raise ValueError for label smoothing."""
        # the model gives scores to the labels alone, and smoothing would need those of all words
        smoothing = getattr(criterion, "eps", 0)
        if smoothing:
            raise ValueError(
                f"--label-smoothing {smoothing} with a side of labels: the other words of "
                f"dict.{self.lang}.txt can be no label; allowed: 0"
            )

    def check_pair(self, place: str, pair: str, dataset: LanguagePairDataset) -> None:
        """Raise ValueError, with the line, for an empty text or what is not one known label.

        place: where the data come from, such as the path of a split.
        """
        sides = (dataset.src, dataset.src_sizes), (dataset.tgt, dataset.tgt_sizes)
        for lang, (sentences, sizes) in zip(LanguagePair.parse(pair), sides):
            # sources without references have no target
            if sentences is not None:
                self.check_sentences(f"{place}.{lang}", lang, sentences, sizes)

    def check_sentences(
        self, file: Optional[str], lang: str, sentences: Sequence[Tensor], sizes: Sequence[int]
    ) -> None:
        """Raise ValueError for sentences that cannot be of the side ``lang``.

        file: where they come from; None if they are not from a file.
        """
        if lang == self.lang:
            check_labels(file, sentences, self.dictionary, lang)
        else:
            check_texts(file, sizes)


class LabelSearch:
    """Lists all labels of a text, the most probable first, in place of beam search.

    A hypothesis is a label and the end symbol. Its score is log P(label | text); for several
    models it is the logarithm of their mean probability.
    """

    def __init__(self, models: Sequence[BaseFairseqModel], dictionary: Dictionary, **_unused: Any):
        self.end, self.first = dictionary.eos(), dictionary.nspecial
        self.count = len(labels(dictionary))
        self.symbols_to_strip_from_output = {self.end}

    @torch.no_grad()
    def generate(
        self, models: Sequence[BaseFairseqModel], sample: Dict[str, Any], **_unused: Any
    ) -> List[List[Dict[str, Any]]]:
        """Return the hypotheses of each text, as fairseq's generators do."""
        tokens, lengths = (sample["net_input"][name] for name in ("src_tokens", "src_lengths"))
        previous = torch.full_like(tokens[:, :1], self.end)  # (B, 1)

        def of_labels(model: BaseFairseqModel) -> Tensor:
            """Return log P of the labels (B, L) by one model."""
            output = model(tokens, lengths, previous)
            log_probs = model.get_normalized_probs(output, log_probs=True)[:, 0]  # (B, N)
            return log_probs[:, self.first : self.first + self.count].float()

        log_probs = mean_log_probs(models, of_labels)  # (B, L)
        scores, order = log_probs.sort(dim=1, descending=True)
        rows = zip(order + self.first, scores)
        return [[self._hypothesis(*entry) for entry in zip(*row)] for row in rows]

    def _hypothesis(self, label: Tensor, score: Tensor) -> Dict[str, Any]:
        """Return the hypothesis that consists of a label (an entry of the dictionary)."""
        return {
            "tokens": torch.stack([label, torch.full_like(label, self.end)]),
            "score": score,
            # the end symbol after a label is certain
            "positional_scores": torch.stack([score, torch.zeros_like(score)]),
            "attention": None,
            "alignment": torch.empty(0),
        }
