"""The task ``text_classification``: a text and its label as a pair of "languages".

The data are what ``fairseq-preprocess -s text -t label`` makes; a line of the label file is one
word. Training, ``fairseq-validate`` and early stopping are fairseq's own. ``fairseq-interactive``
and ``fairseq-generate`` say the most probable label of a text, with ``--nbest N`` the N most
probable; the score of H- and D- lines is log2 P(label | text), as fairseq's scores are, and the
P- line is P(label | text) itself.
"""

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Optional

import torch
from fairseq.data import Dictionary, LanguagePairDataset, data_utils
from fairseq.dataclass import FairseqDataclass
from fairseq.tasks import FairseqTask, register_task
from omegaconf import MISSING

from ..common import labels


@dataclass
class TextClassificationConfig(FairseqDataclass):
    data: str = field(
        default=MISSING, metadata={"help": "folder made by fairseq-preprocess -s text -t label"}
    )
    source_lang: Optional[str] = field(
        default="text", metadata={"help": "ending of the files of texts", "argparse_alias": "-s"}
    )
    target_lang: Optional[str] = field(
        default="label", metadata={"help": "ending of the files of labels", "argparse_alias": "-t"}
    )


@register_task("text_classification", dataclass=TextClassificationConfig)
class TextClassificationTask(FairseqTask):
    """Labels of texts. The end symbol of a text is not given to the model."""

    def __init__(self, cfg: TextClassificationConfig, texts: Dictionary, names: Dictionary):
        super().__init__(cfg)
        self.texts, self.names = texts, names

    @classmethod
    def setup_task(cls, cfg: TextClassificationConfig, **_unused):
        """ValueError for a folder without dictionaries, or with fewer than two labels."""
        found = []
        for kind in (cfg.source_lang, cfg.target_lang):
            path = Path(cfg.data) / f"dict.{kind}.txt"
            if not path.is_file():
                raise ValueError(
                    f"{path}: no such dictionary; {cfg.data} must be a folder made by "
                    f"fairseq-preprocess -s {cfg.source_lang} -t {cfg.target_lang}"
                )
            found.append(cls.load_dictionary(str(path)))
        names = labels.labels(found[1])
        if len(names) < 2:
            raise ValueError(f"{path}: {len(names)} labels ({names}), at least 2 needed")
        return cls(cfg, *found)

    def load_dataset(self, split, combine=False, **_unused):
        """ValueError, with the line, for an empty text or for what is not one known label."""
        pair = f"{split}.{self.cfg.source_lang}-{self.cfg.target_lang}"
        sides = []
        for kind, dictionary in (
            (self.cfg.source_lang, self.texts),
            (self.cfg.target_lang, self.names),
        ):
            prefix = str(Path(self.cfg.data) / f"{pair}.{kind}")
            side = data_utils.load_indexed_dataset(prefix, dictionary)
            if side is None:
                raise FileNotFoundError(f"{prefix}.idx: no such binarised file")
            sides.append((prefix, side))
        (text_file, texts), (label_file, targets) = sides
        if len(texts) != len(targets):
            raise ValueError(f"{text_file}: {len(texts)} texts, but {len(targets)} labels")
        labels.check_texts(text_file, texts.sizes)
        labels.check_labels(label_file, targets, self.names, self.cfg.target_lang)
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
        )

    def build_dataset_for_inference(self, src_tokens, src_lengths, **_unused):
        labels.check_texts("text to be labelled", src_lengths)
        return LanguagePairDataset(
            src_tokens,
            src_lengths,
            self.texts,
            tgt_dict=self.names,
            left_pad_source=False,
            input_feeding=False,
            remove_eos_from_source=True,
        )

    def build_generator(self, models, args, **_unused):
        return LabelGenerator(self.names)

    @property
    def source_dictionary(self):
        return self.texts

    @property
    def target_dictionary(self):
        return self.names


class LabelGenerator:
    """What fairseq's commands ask for hypotheses: all labels, the most probable first."""

    symbols_to_strip_from_output = frozenset()

    def __init__(self, dictionary: Dictionary):
        self.dictionary = dictionary

    def generate(self, models, sample, **_unused):
        """For each text its hypotheses; several models give the mean of their probabilities."""
        probs = [
            model.get_normalized_probs(model(**sample["net_input"]), log_probs=False)
            for model in models
        ]
        probs, order = torch.stack(probs).mean(dim=0).cpu().sort(dim=1, descending=True)  # (B, L)
        return [
            [self._hypothesis(number, prob) for number, prob in zip(*row)]
            for row in zip(order.tolist(), probs)
        ]

    def _hypothesis(self, number: int, prob):
        return {
            "tokens": labels.entry(number, self.dictionary),
            "score": prob.log(),
            "positional_scores": prob.view(1) * math.log(2),  # fairseq divides by log 2
            "attention": None,
            "alignment": torch.empty(0),
        }
