"""Dual learning's task: both directions of every pair, on the same sentences, in every update."""

from dataclasses import dataclass, field
from typing import Dict, List, Optional

import numpy as np
from fairseq.data import Dictionary
from fairseq.dataclass import ChoiceEnum
from fairseq.tasks import register_task

from ..streams.schedule import SCHEDULES
from ..streams.task import StreamsConfig, StreamsTask
from .inference import LENGTH_NORMS, DualInference, Reverse, check_alpha
from .label_sides import LabelSides
from .reverse import load_models, one_direction, reverse_of, same_models


@dataclass
class DualTranslationConfig(StreamsConfig):
    schedule: ChoiceEnum(SCHEDULES) = field(
        default="joint",
        metadata={
            "help": "pairs of each update: joint (the paper: -log P(y|x; f) - log P(x|y; g) on the "
            "same sentences), cycle, main+aux, temperature"
        },
    )
    one_way: bool = field(
        default=False,
        metadata={"help": "train the pairs named and not their reverses too: the baselines"},
    )
    dual_alpha: float = field(
        default=1.0,
        metadata={
            "help": "at inference: alpha of Eq. 7; the beam's n-best are ranked by "
            "alpha * log P(y|x) + (1 - alpha) * log P(x|y); 1 = plain beam search"
        },
    )
    dual_length_norm: ChoiceEnum(LENGTH_NORMS) = field(
        default="tokens",
        metadata={"help": "the two terms of --dual-alpha are for each token, or for the sentence"},
    )
    dual_path: Optional[str] = field(
        default=None,
        metadata={
            "help": "checkpoints for log P(x|y), FILE or FILE:FILE, of any fairseq task with the "
            "same dictionaries (default: those of --path)"
        },
    )


@register_task("dual_translation", dataclass=DualTranslationConfig)
class DualTranslationTask(LabelSides, StreamsTask):
    """-s de -t en trains de-en and en-de; --lang-pairs de-en,fr-en both directions of each.

    For dual inference --path may also be a model of -s -t only, such as fairseq's transformer.

    from_checkpoint: whether the model is a trained one, of which only inference is wanted.
    """

    cfg: DualTranslationConfig
    from_checkpoint = False
    _coupled = False

    @classmethod
    def setup_task(cls, cfg: DualTranslationConfig, **kwargs):
        check_alpha(cfg.dual_alpha)
        return super().setup_task(cfg, **kwargs)

    @classmethod
    def training_pairs(cls, cfg: DualTranslationConfig) -> List[str]:
        pairs = super().training_pairs(cfg)
        if cfg.one_way:
            return pairs
        reverse = ["-".join(reversed(pair.split("-"))) for pair in pairs]
        both = [direction for couple in zip(pairs, reverse) for direction in couple]
        return list(dict.fromkeys(both))

    def can_translate(self, pair: str) -> bool:
        """Also directions without training data: every component encodes and decodes."""
        langs = {lang for known in self.pairs for lang in known.split("-")}
        source, target = pair.split("-")
        return source != target and {source, target} <= langs

    # ---------------------------------------------------------------- dual supervised learning

    def couple_directions(self) -> None:
        """From now on one call of the criterion is given a pair and its reverse.

        ValueError for options with which an update may hold one of them alone.
        """
        allowed = dict(
            schedule="joint", one_way=False, join_at=None, pair_patience=0, pair_parallel=False
        )
        for name, value in allowed.items():
            found = self.cfg[name]
            if str(found or None) != str(value or None):
                raise ValueError(
                    f"--{name.replace('_', '-')} {found}: dual supervised learning needs both "
                    f"directions of a pair in every update; allowed: {value or 'leave it out'}"
                )
        self._coupled = True

    def pair_dictionaries(self) -> Dict[str, Dictionary]:
        """{lang: dictionary} of the languages that are trained."""
        langs = (lang for pair in self.pairs for lang in pair.split("-"))
        return {lang: self.dictionaries[lang] for lang in langs}

    def calls(self, sample):
        if not self._coupled:
            return sample
        couples: Dict[str, Dict] = {}
        for pair, part in sample.items():
            couples.setdefault(",".join(sorted((pair, reverse_of(pair)))), {})[pair] = part
        return couples

    def load_dataset(self, split, epoch=1, combine=False, **kwargs):
        super().load_dataset(split, epoch, combine, **kwargs)
        if self._coupled and split == self.cfg.train_subset:
            check_same_sentences(self.datasets[split].datasets, split)

    # ---------------------------------------------------------------- inference

    def build_model(self, cfg, from_checkpoint=False):
        self.from_checkpoint = from_checkpoint
        model = super().build_model(cfg, from_checkpoint)
        if from_checkpoint and not hasattr(model, "direction"):
            self._choose_direction()
            self._check_direction(cfg)
        return model

    def _check_direction(self, cfg) -> None:
        """ValueError where a stock model, which has one direction, translates another."""
        languages = [getattr(cfg, f"{side}_lang", None) for side in ("source", "target")]
        if self.pair and all(languages) and "-".join(languages) != self.pair:
            raise ValueError(
                f"--path: the checkpoint translates {'-'.join(languages)}; -s and -t ask for "
                f"{self.pair}"
            )

    def build_generator(self, models, args, *more, **options):
        """The stock generator; with --dual-alpha below 1 its n-best lists are ranked by Eq. 7."""
        generator = super().build_generator(models, args, *more, **options)
        if self.cfg.dual_alpha == 1:
            return generator
        if getattr(args, "score_reference", False):
            raise ValueError(
                f"--dual-alpha {self.cfg.dual_alpha} with --score-reference: there is one "
                "translation of each sentence and nothing to rank; allowed: --dual-alpha 1"
            )
        reverse = Reverse(self._reverse(models), self.source_dictionary, self.cfg.left_pad_source)
        norm = str(self.cfg.dual_length_norm)
        return DualInference(generator, reverse, self.cfg.dual_alpha, norm)

    def _reverse(self, models):
        """The models of the other direction, where and as those of --path are."""
        pair = reverse_of(self.pair)
        if not self.cfg.dual_path:
            return same_models(models, pair)
        like = next(models[0].parameters())
        found = load_models(self.cfg.dual_path, pair, self.cfg.data)
        return [model.to(like) for model in found]

    def _directions(self, models):
        if all(hasattr(model, "direction") for model in models):
            return super()._directions(models)
        return [one_direction(model, self.pair) for model in models]


def check_same_sentences(datasets, split: str) -> None:
    """Raise ValueError unless sentence N of a pair is sentence N of its reverse, by their lengths.

    A folder may hold both train.de-en and train.en-de, and --truncate-source cuts one side of each.
    """
    for pair, dataset in datasets.items():
        other = datasets[reverse_of(pair)]
        if not np.array_equal(dataset.src_sizes, other.tgt_sizes):
            raise ValueError(
                f"{split} of {pair} and of {reverse_of(pair)}: other sentences or other lengths; "
                f"dual supervised learning needs one binarised {split} set for both, and no "
                "--truncate-source"
            )
