"""The task ``text_classification``: a text and its label as a pair of "languages".

The data are what ``fairseq-preprocess -s text -t label`` makes; a line of the label file is one
word. Training, ``fairseq-validate`` and early stopping are fairseq's own. ``fairseq-interactive``
and ``fairseq-generate`` say the most probable label of a text, with ``--nbest N`` the N most
probable, with ``--score-reference`` the true one; the score of H- and D- lines is
log2 P(label | text), as fairseq's scores are, and the P- line is P(label | text) itself.
"""

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, FrozenSet, List, Optional, Sequence, Tuple

import torch
from fairseq.criterions import FairseqCriterion
from fairseq.data import (
    ConcatDataset,
    Dictionary,
    FairseqDataset,
    LanguagePairDataset,
    indexed_dataset,
)
from fairseq.dataclass import FairseqDataclass
from fairseq.models import BaseFairseqModel
from fairseq.tasks import FairseqTask, register_task
from omegaconf import II, MISSING
from torch import Tensor

from ...common import labels
from ...common.empty_files import binarised_lines
from ...common.ensembles import mean_log_probs
from ...common.search_options import refuse_search
from ...compat.user_errors import SPLIT_OPTIONS


@dataclass
class TextClassificationConfig(FairseqDataclass):
    """Options of ``text_classification``: where the texts and the labels are."""

    data: str = field(
        default=MISSING, metadata={"help": "folder written by fairseq-preprocess -s text -t label"}
    )
    source_lang: Optional[str] = field(
        default="text",
        metadata={"help": "ending of the names of text files", "argparse_alias": "-s"},
    )
    target_lang: Optional[str] = field(
        default="label",
        metadata={"help": "ending of the names of label files", "argparse_alias": "-t"},
    )
    dataset_impl: Optional[str] = II("dataset.dataset_impl")
    required_seq_len_multiple: int = II("dataset.required_seq_len_multiple")


@register_task("text_classification", dataclass=TextClassificationConfig)
class TextClassificationTask(FairseqTask):
    """Labels of texts. The end symbol of a text is not given to the model."""

    def __init__(self, cfg: TextClassificationConfig, texts: Dictionary, names: Dictionary):
        super().__init__(cfg)
        self.texts, self.names = texts, names

    @classmethod
    def setup_task(cls, cfg: TextClassificationConfig, **_unused: Any) -> "TextClassificationTask":
        """Return the task.

        FileNotFoundError for a folder without dictionaries, ValueError for one with one label.
        """
        dictionaries = []
        for kind in (cfg.source_lang, cfg.target_lang):
            path = Path(cfg.data) / f"dict.{kind}.txt"
            if not path.is_file():
                raise FileNotFoundError(
                    f"{path}: no such dictionary; {cfg.data} must be a folder made by "
                    f"fairseq-preprocess -s {cfg.source_lang} -t {cfg.target_lang}"
                )
            dictionaries.append(cls.load_dictionary(str(path)))
        labels.check_dictionary(dictionaries[1], dictionaries[0], str(cfg.target_lang))
        return cls(cfg, *dictionaries)

    def load_dataset(self, split: str, combine: bool = False, **_unused: Any) -> None:
        """Read a split into ``self.datasets``.

        Raises FileNotFoundError without files, ValueError for a file without lines and, with the
        line, for an empty text or for what is not one known label.
        """
        parts = [self._load_part(split)]
        while combine and self._has_part(f"{split}{len(parts)}"):  # train, train1, train2 ...
            parts.append(self._load_part(f"{split}{len(parts)}"))
        # one file is left as it is; train, train1 .. are joined
        texts, targets = (
            side[0] if len(side) == 1 else ConcatDataset(list(side)) for side in zip(*parts)
        )
        # padded on the right, without the end symbol: the classifier reads words alone
        self.datasets[split] = LanguagePairDataset(
            texts,
            texts.sizes,
            self.texts,
            targets,
            targets.sizes,
            self.names,
            left_pad_source=False,
            input_feeding=False,
            remove_eos_from_source=True,
            pad_to_multiple=self.cfg.required_seq_len_multiple,
        )

    def _prefix(self, split: str, lang: str) -> str:
        pair = f"{self.cfg.source_lang}-{self.cfg.target_lang}"
        return str(Path(self.cfg.data) / f"{split}.{pair}.{lang}")

    def _has_part(self, split: str) -> bool:
        """True if there are texts of this name."""
        prefix = self._prefix(split, self.cfg.source_lang)
        return indexed_dataset.infer_dataset_impl(prefix) is not None

    def _load_part(self, split: str) -> Tuple[FairseqDataset, FairseqDataset]:
        """Return checked texts and labels of one pair of files."""
        sides = []
        for lang, dictionary in (
            (self.cfg.source_lang, self.texts),
            (self.cfg.target_lang, self.names),
        ):
            prefix = self._prefix(split, lang)
            empty = f"{prefix}: holds no line"
            side = binarised_lines(prefix, dictionary, self.cfg.dataset_impl, empty)
            if side is None:
                raise FileNotFoundError(
                    f"{prefix}.idx: no such binarised file of the split {split!r} ({SPLIT_OPTIONS})"
                )
            sides.append((prefix, side))
        (text_file, texts), (label_file, targets) = sides
        # line N of both files is one pair
        if len(texts) != len(targets):
            raise ValueError(f"{text_file}: {len(texts)} texts, but {len(targets)} labels")
        labels.check_texts(text_file, texts.sizes)
        labels.check_labels(label_file, targets, self.names, self.cfg.target_lang)
        return texts, targets

    def build_dataset_for_inference(
        self, src_tokens: List[Tensor], src_lengths: Sequence[int], **_unused: Any
    ) -> LanguagePairDataset:
        """Return the data set of texts that were typed in; ValueError if a text is empty."""
        labels.check_texts(None, src_lengths)
        return LanguagePairDataset(
            src_tokens,
            src_lengths,
            self.texts,
            tgt_dict=self.names,
            left_pad_source=False,
            input_feeding=False,
            remove_eos_from_source=True,
        )

    def build_criterion(self, cfg: Any) -> FairseqCriterion:
        """Return the criterion; ValueError for those of fairseq, which expect a word after each."""
        criterion = super().build_criterion(cfg)
        # they would compare the scores of labels with a word at each position of the target
        if type(criterion).__module__.startswith("fairseq.criterions"):
            name = getattr(cfg, "_name", None) or type(criterion).__name__
            raise ValueError(
                f"--criterion {name} does not fit --task text_classification, whose models give "
                "one distribution for a text; allowed: label_cross_entropy"
            )
        return criterion

    def build_generator(
        self, models: List[BaseFairseqModel], args: Any, **_unused: Any
    ) -> "LabelGenerator":
        """Return what lists all labels or, with --score-reference, the true one alone."""
        refuse_search(args)
        return LabelGenerator(self.names, bool(getattr(args, "score_reference", False)))

    @property
    def source_dictionary(self) -> Dictionary:
        """Return the dictionary of the texts."""
        return self.texts

    @property
    def target_dictionary(self) -> Dictionary:
        """Return the dictionary of the labels."""
        return self.names


class LabelGenerator:
    """What fairseq's commands ask for hypotheses: all labels, the most probable first.

    references: the true label of each text instead, with its score.
    """

    symbols_to_strip_from_output: FrozenSet[int] = frozenset()

    def __init__(self, dictionary: Dictionary, references: bool = False):
        self.dictionary, self.references = dictionary, references

    @torch.no_grad()
    def generate(
        self, models: List[BaseFairseqModel], sample: Dict[str, Any], **_unused: Any
    ) -> List[List[Dict[str, Any]]]:
        """Return the hypotheses of each text; several models give the mean of their probabilities.

        ValueError where the true labels are asked for and there are none.
        """
        if self.references and sample.get("target") is None:
            raise ValueError("--score-reference: the texts have no labels; allowed: without it")

        def of_labels(model: BaseFairseqModel) -> Tensor:
            """Return log P of the labels (B, L) by one model."""
            return model.get_normalized_probs(model(**sample["net_input"]), log_probs=True)

        log_probs = mean_log_probs(models, of_labels)  # (B, L)
        if self.references:
            order = labels.numbers(sample["target"], self.dictionary).unsqueeze(1)  # (B, 1)
            scores = log_probs.gather(1, order).cpu()
        else:
            # all labels, the best first: a search over one symbol is a sort
            scores, order = log_probs.cpu().sort(dim=1, descending=True)
        return [
            [self._hypothesis(number, score) for number, score in zip(*row)]
            for row in zip(order.tolist(), scores)
        ]

    def _hypothesis(self, number: int, score: Tensor) -> Dict[str, Any]:
        """Return a hypothesis of fairseq's generators that consists of label ``number``."""
        return {
            "tokens": labels.entry(number, self.dictionary),
            "score": score,
            "positional_scores": score.exp().view(1) * math.log(2),  # fairseq divides by log 2
            "attention": None,
            "alignment": torch.empty(0),
        }
