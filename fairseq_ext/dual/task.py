"""Dual learning's task: both directions of every pair, on the same sentences, in every update."""

import math
from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np
from fairseq.criterions import FairseqCriterion
from fairseq.data import Dictionary, FairseqDataset, LanguagePairDataset
from fairseq.dataclass import ChoiceEnum
from fairseq.models import BaseFairseqModel
from fairseq.sequence_generator import SequenceGenerator
from fairseq.tasks import register_task
from torch import Tensor

from ..common.beam_search import BeamSearchGenerator
from ..common.search_options import refuse_search
from ..compat.user_errors import option_of
from ..streams.config import is_given
from ..streams.dataset import StreamsDataset
from ..streams.lang_pairs import parse_labelled_pairs
from ..streams.language_pair import LanguagePair, languages, reverse_of
from ..streams.model import HasDirections
from ..streams.schedule import SCHEDULES
from ..streams.task import StreamsConfig, StreamsTask
from .lstm_classifier.label_sides import LabelSearch, LabelSide
from .reranker import LENGTH_NORMS, DualReranker, PairScorer, check_alpha
from .reverse_models import load_models, reversed_models
from .transformer.roles import is_trained

# options of dual inference, and the values with which there is none
RANKING: Dict[str, Any] = {"dual_alpha": 1.0, "dual_path": None, "dual_length_norm": "tokens"}


@dataclass
class DualTranslationConfig(StreamsConfig):
    """Options of ``dual_translation``: those of several pairs, and of dual inference.

    Those of dual inference are for fairseq-generate and fairseq-interactive.
    """

    schedule: ChoiceEnum(SCHEDULES) = field(
        default="joint",
        metadata={
            "help": "pairs that take part in each update: joint (the paper: -log P(y|x; f) - log "
            "P(x|y; g) on the same sentences), cycle, main+aux or temperature"
        },
    )
    one_way: bool = field(
        default=False,
        metadata={"help": "train only the pairs named, without their reverses (the baselines)"},
    )
    dual_alpha: float = field(
        default=1.0,
        metadata={
            "help": "at inference: alpha of Eq. 7, from 0 to 1; the n-best list of the beam is "
            "ranked by alpha * log P(y|x) + (1 - alpha) * log P(x|y); 1 = plain beam search"
        },
    )
    dual_length_norm: ChoiceEnum(LENGTH_NORMS) = field(
        default="tokens",
        metadata={
            "help": "length normalisation of the two terms of --dual-alpha: per token, or none "
            "(per sentence)"
        },
    )
    dual_path: Optional[str] = field(
        default=None,
        metadata={
            "help": "checkpoints for log P(x|y), FILE or FILE:FILE, of any fairseq task with the "
            "same dictionaries (default: those of --path)"
        },
    )


@register_task("dual_translation", dataclass=DualTranslationConfig)
class DualTranslationTask(StreamsTask):
    """-s de -t en trains de-en and en-de; --lang-pairs de-en,fr-en both directions of each.

    For dual inference --path may also be a model of -s -t only, such as fairseq's transformer.
    """

    cfg: DualTranslationConfig
    label_side: Optional[LabelSide] = None
    _coupled = False
    # tokens of a source, which the models of the reverse direction write
    _longest_source: float = math.inf
    # the direction of stock models, which have one
    _single: Optional[str] = None

    @classmethod
    def setup_task(cls, cfg: DualTranslationConfig, **kwargs: Any) -> "DualTranslationTask":
        """Return the task; ValueError, naming the option, for values that do not fit."""
        check_alpha(cfg.dual_alpha)
        return super().setup_task(cfg, **kwargs)

    @classmethod
    def training_pairs(  # type: ignore[override]  # its own options
        cls, cfg: DualTranslationConfig, requested: Optional[LanguagePair]
    ) -> List[str]:
        """Return the directions that a run with these options trains."""
        pairs = super().training_pairs(cfg, requested)
        if cfg.one_way:
            return pairs
        # Z's component is trained in both roles only if both directions are
        both = [direction for pair in pairs for direction in (pair, reverse_of(pair))]
        # a user may have named both directions of a pair
        return list(dict.fromkeys(both))

    def can_translate(self, pair: str) -> bool:
        """True if other pairs have trained both roles of ``pair``, with data of it or without.

        With a stock model in the ensemble, its direction alone.
        """
        return is_trained(pair, self.pairs) and self._single in (None, pair)

    # ---------------------------------------------------------------- dual supervised learning

    def couple_directions(self) -> None:
        """Give the criterion a pair and its reverse in one call, from now on.

        Raises ValueError for options with which an update may hold one of them alone.
        """
        allowed = dict(
            schedule="joint",
            one_way=False,
            join_at=None,
            pair_patience=0,
            pair_parallel=False,
            monolingual=None,
        )
        for name, value in allowed.items():
            actual = self.cfg[name]
            # False, 0, "" and None all leave an option out
            if is_given(actual or None, value or None):
                raise ValueError(
                    f"{option_of(name, actual)}: dual supervised learning needs both "
                    f"directions of a pair in every update; allowed: {value or 'leave it out'}"
                )
        labelled = parse_labelled_pairs(self.cfg.lang_pairs)
        if labelled:
            raise ValueError(
                f"--lang-pairs {self.cfg.lang_pairs}: dual supervised learning needs both "
                f"directions of a pair in every update; allowed: leave {labelled[0]} out"
            )
        self._coupled = True

    def pair_dictionaries(self) -> Dict[str, Dictionary]:
        """Return {lang: dictionary} of the languages that are trained."""
        return {lang: self.dictionaries[lang] for lang in languages(self.pairs)}

    def criterion_calls(self, sample: Mapping[str, Dict[str, Any]]) -> Mapping[str, Any]:
        """Return {name: what one call of the criterion is given}."""
        if not self._coupled:
            return sample
        couples: Dict[str, Dict[str, Any]] = {}
        for pair, part in sample.items():
            # both directions of a pair have the same sorted names
            couples.setdefault(",".join(sorted((pair, reverse_of(pair)))), {})[pair] = part
        return couples

    def load_dataset(
        self, split: str, epoch: int = 1, combine: bool = False, **kwargs: Any
    ) -> None:
        """Read a split; ValueError where coupled directions have different sentences."""
        super().load_dataset(split, epoch, combine, **kwargs)
        # other splits are not scored by the gap
        if self._coupled and split == self.cfg.train_subset:
            check_same_sentences(self.datasets[split], split)

    # ---------------------------------------------------------------- a side of labels

    @property
    def label_lang(self) -> Optional[str]:
        """Return the side of the labels, None while there is no model that has one."""
        return self.label_side.lang if self.label_side else None

    def is_cut(self, lang: str, bpe: Optional[str]) -> bool:
        """True unless the side is that of the labels, which are one word each."""
        return lang != self.label_lang

    def _load_pair(self, path: str, split: str, pair: str, combine: bool) -> LanguagePairDataset:
        """Read a pair; ValueError, with the line, for data that are no texts and labels."""
        dataset = super()._load_pair(path, split, pair, combine)
        # before there is a model, nobody knows which side holds labels
        if self.label_side:
            self.label_side.check_pair(f"{path}: {split}", pair, dataset)
        return dataset

    def build_dataset_for_inference(
        self, src_tokens: List[Tensor], src_lengths: Sequence[int], **options: Any
    ) -> FairseqDataset:
        """Return the data set of sentences that were typed in; ValueError for an empty text."""
        if self.label_side and self.pair:
            lang = LanguagePair.parse(self.pair).source
            self.label_side.check_sentences(None, lang, src_tokens, src_lengths)
        return super().build_dataset_for_inference(src_tokens, src_lengths, **options)

    def build_criterion(self, cfg: Any) -> FairseqCriterion:
        """Return the criterion; ValueError for label smoothing with a side of labels."""
        criterion = super().build_criterion(cfg)
        if self.label_side:
            self.label_side.check_criterion(criterion)
        return criterion

    # ---------------------------------------------------------------- model and inference

    def build_model(self, cfg: Any, from_checkpoint: bool = False) -> BaseFairseqModel:
        """Return the model for the pairs of the run or, from a checkpoint, of the checkpoint.

        Raises ValueError for options of dual inference in training, and for a direction that the
        checkpoint does not translate.
        """
        if not from_checkpoint:
            check_ranking(self.cfg, "training, which ranks no translations")
        model = super().build_model(cfg, from_checkpoint)
        label_lang = getattr(model, "label_lang", None)
        self.label_side = (
            LabelSide(label_lang, self.dictionaries[label_lang]) if label_lang else None
        )
        if self.label_side and self.synthetic and not from_checkpoint:
            raise ValueError(
                f"{self.synthetic[0]}: synthetic pairs are of two languages, and {label_lang} "
                "holds labels; allowed: leave out --monolingual and pairs with a label"
            )
        if self.label_side:
            self.label_side.check_bleu(self.cfg.eval_bleu and not from_checkpoint)
        # a stock model translates one direction and does not say which: its options do
        if from_checkpoint and not isinstance(model, HasDirections):
            self.choose_direction()
            self._check_direction(cfg)
            self._single = self.pair
        elif from_checkpoint and self.pair:
            model.direction(self.pair)  # ValueError where separate models have no such direction
        return model

    def _check_direction(self, cfg: Any) -> None:
        """Raise ValueError where a stock model, which has one direction, translates another."""
        source, target = (getattr(cfg, f"{side}_lang", None) for side in ("source", "target"))
        trained = f"{source}-{target}"
        if self.pair and source and target and trained != self.pair:
            raise ValueError(
                f"--path: the checkpoint translates {trained}; -s and -t ask for {self.pair}"
            )

    def build_generator(
        self, models: List[BaseFairseqModel], args: Any, *more: Any, **options: Any
    ) -> Union[SequenceGenerator, LabelSearch, DualReranker]:
        """Return the search of the direction: a beam search, or a list of all labels.

        With --dual-alpha below 1 its n-best lists are ranked by Eq. 7.
        """
        if self.label_lang and self.pair and self.pair.endswith(f"-{self.label_lang}"):
            refuse_search(args)
            options["seq_gen_cls"] = LabelSearch
        generator = super().build_generator(models, args, *more, **options)
        # lists are already in the order of alpha 1, and options of the ranking would do nothing
        if self.cfg.dual_alpha == 1:
            check_ranking(self.cfg, "--dual-alpha 1, plain beam search")
            return generator
        if getattr(args, "score_reference", False):
            raise ValueError(
                f"--dual-alpha {self.cfg.dual_alpha} with --score-reference: there is one "
                "translation of each sentence and nothing to rank; allowed: --dual-alpha 1"
            )
        left_pad, forward = self.cfg.left_pad_source, None
        readers = self._reverse_models(models)
        reverse = PairScorer(readers, self.source_dictionary, left_pad)
        if isinstance(generator, BeamSearchGenerator):
            # the models of the reverse direction read the translations, end symbols included
            longest, longest_source = map(min, zip(*(model.max_positions() for model in readers)))
            generator.max_len = min(generator.max_len, longest)
            self._longest_source = longest_source
        if getattr(args, "match_source_len", False):
            forward = PairScorer(generator.model.models, self.target_dictionary, left_pad)
        norm = str(self.cfg.dual_length_norm)
        longest_source = self._longest_source
        return DualReranker(generator, reverse, self.cfg.dual_alpha, norm, forward, longest_source)

    def max_positions(self) -> Tuple[float, int]:
        """Return the longest source and target in tokens, in dual inference of both directions."""
        source, target = super().max_positions()
        return min(source, self._longest_source), target

    def _reverse_models(self, models: Sequence[BaseFairseqModel]) -> List[BaseFairseqModel]:
        """Return the models of the reverse direction, on the device and of the type of --path's."""
        assert self.pair is not None  # the generator of the direction has been built
        pair = reverse_of(self.pair)
        if not self.cfg.dual_path:
            return reversed_models(models, pair)
        like = next(models[0].parameters())
        # checkpoints of --dual-path are read to the CPU in single precision
        return [model.to(like) for model in load_models(self.cfg.dual_path, pair, self.cfg.data)]

    def _directions(self, models: Sequence[BaseFairseqModel]) -> List[BaseFairseqModel]:
        """Return the chosen direction of each model; a stock model has one direction alone."""
        if self.pair is None:
            return super()._directions(models)
        # without arguments, super() does not work inside of a comprehension
        of_several = super()._directions
        return [
            of_several([model])[0] if isinstance(model, HasDirections) else model
            for model in models
        ]


def check_ranking(cfg: DualTranslationConfig, where: str) -> None:
    """Raise ValueError for an option of dual inference; ``where`` says why it does nothing."""
    for name, value in RANKING.items():
        if is_given(cfg[name], value):
            raise ValueError(
                f"{option_of(name)} {cfg[name]} does nothing in {where}; allowed: leave it out"
            )


def check_same_sentences(dataset: StreamsDataset, split: str) -> None:
    """Raise ValueError unless sentence N of a pair is sentence N of its reverse, as long.

    A folder may hold both train.de-en and train.en-de, and --truncate-source cuts one side of each.
    """
    for pair, part in dataset.datasets.items():
        other = reverse_of(pair)
        same = dataset.sets[pair] == dataset.sets[other]
        if not (same and np.array_equal(part.src_sizes, dataset.datasets[other].tgt_sizes)):
            raise ValueError(
                f"{split} of {pair} and of {other}: other sentences or other lengths; dual "
                f"supervised learning needs one binarised {split} set for both, and no "
                "--truncate-source"
            )
