"""What the task knows of labels: data that are checked, and all labels as hypotheses.

Dimensions: B texts, L labels.
"""

from typing import Any, Dict, List, Optional

import torch
from torch import Tensor

from ..common.labels import check_labels, check_texts, labels


class LabelSides:
    """The part of ``DualTranslationTask`` for models that have a ``label_lang``."""

    label_lang: Optional[str] = None
    cfg: Any
    dictionaries: Dict[str, Any]
    pair: Optional[str]

    _lines_read = 0  # fairseq-interactive gives them by the buffer

    def build_model(self, cfg, from_checkpoint=False):
        model = super().build_model(cfg, from_checkpoint)
        self.label_lang = getattr(model, "label_lang", None)
        return model

    def _load_pair(self, path: str, split: str, pair: str, combine: bool):
        """ValueError, with the line, for an empty text or for what is not one known label."""
        dataset = super()._load_pair(path, split, pair, combine)
        sides = (dataset.src, dataset.src_sizes), (dataset.tgt, dataset.tgt_sizes)
        if self.label_lang:
            for lang, (sentences, sizes) in zip(pair.split("-"), sides):
                self._check(f"{path}: {split}.{lang}", lang, sentences, sizes)
        return dataset

    def build_dataset_for_inference(self, src_tokens, src_lengths, **more):
        if self.label_lang:
            lang = self.pair.split("-")[0]
            self._check("input", lang, src_tokens, src_lengths, self._lines_read)
            self._lines_read += len(src_lengths)
        return super().build_dataset_for_inference(src_tokens, src_lengths, **more)

    def _check(self, file: str, lang: str, sentences, sizes, before: int = 0) -> None:
        if sentences is None:  # sources without references
            return
        if lang == self.label_lang:
            check_labels(file, sentences, self.dictionaries[lang], lang, before)
        else:
            check_texts(file, sizes, before)

    def build_generator(self, models, args, *more, **options):
        """For labels ``LabelSearch``, otherwise the stock generator."""
        if self.label_lang and self.pair and self.pair.endswith(f"-{self.label_lang}"):
            options["seq_gen_cls"] = LabelSearch
        return super().build_generator(models, args, *more, **options)


class LabelSearch:
    """Instead of beam search: all labels of a text, the most probable first.

    A hypothesis is a label and the end symbol; its score is log P(label | text), for several
    models the logarithm of their mean probability.
    """

    def __init__(self, models, dictionary, **_unused):
        self.end, self.first = dictionary.eos(), dictionary.nspecial
        self.labels = len(labels(dictionary))
        self.symbols_to_strip_from_output = {self.end}

    @torch.no_grad()
    def generate(self, models, sample: Dict[str, Any], **_unused) -> List[List[Dict[str, Any]]]:
        """As fairseq's generators: for each text its hypotheses."""
        tokens, lengths = (sample["net_input"][name] for name in ("src_tokens", "src_lengths"))
        previous = torch.full_like(tokens[:, :1], self.end)
        probs = []
        for model in models:
            output = model.eval()(tokens, lengths, previous)
            found = model.get_normalized_probs(output, log_probs=True)[:, 0]  # (B, N)
            probs.append(found[:, self.first : self.first + self.labels].float())
        logs = torch.stack(probs).logsumexp(dim=0) - torch.tensor(len(models)).log()  # (B, L)
        scores, order = logs.sort(dim=1, descending=True)
        rows = zip(order + self.first, scores)
        return [[self._hypothesis(*one) for one in zip(*row)] for row in rows]

    def _hypothesis(self, label: Tensor, score: Tensor) -> Dict[str, Any]:
        return {
            "tokens": torch.stack([label, torch.full_like(label, self.end)]),
            "score": score,
            "positional_scores": torch.stack([score, torch.zeros_like(score)]),
            "attention": None,
            "alignment": torch.empty(0),
        }
