"""The task base of every system that trains several lang pairs into one model.

Training and validation run on a dict {pair: sample}; inference runs on one direction, chosen by
``-s`` and ``-t``, with the ordinary dataset and generator. Models follow protocols in model.py.
"""

import os
from functools import partial
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Union

from fairseq import utils
from fairseq.data import Dictionary, FairseqDataset, LanguagePairDataset
from fairseq.data.iterators import EpochBatchIterator
from fairseq.models import BaseFairseqModel
from fairseq.tasks import FairseqTask
from torch import Tensor, nn

from ..common.beam_search import fast_search
from .assignment import PairParallelPlan
from .batching import pair_batches
from .bleu import PairBleu
from .config import StreamsConfig
from .dataset import (
    Batch,
    Sample,
    StreamsDataset,
    StreamsIterator,
    TrainingPlan,
    ValidationPlan,
)
from .direction import Direction
from .groups import check_frozen, frozen_pairs, train_only
from .language_pair import LanguagePair, languages
from .pair_data import load_dictionary, load_pair
from .pair_parallel import PairParallel, pair_sizes
from .patience import PairPatience, check_patience
from .requested_direction import requested_direction
from .schedule import check_join_at, check_schedule, parse_join_at, parse_lang_pairs
from .sharing import prefixes, sentence_sets
from .state import RunState
from .steps import Steps
from .stored_pairs import store_pairs, stored_pairs
from .subwords import SubwordsByLanguage, build_subwords


class StreamsTask(Steps):
    """Several lang pairs in training, one direction at inference.

    Attributes:
        pairs: those of the model.
        requested: what -s and -t ask for, or the only pair in the data folder.
        pair: the same, once the model translates it; None while all pairs are trained or validated.
        dictionaries: {lang: dictionary}.
        from_checkpoint: True if the model is a trained one, which is not trained on.
        frozen: pairs of which nothing is trained.
        pair_parallel: what several workers with pairs of their own do.
        pair_patience: what lets pairs leave in training.
        subwords: what cuts typed lines.
        keep_attention: let hypotheses hold their attention, also without an option of alignments.
        run_state: what the order of batches depends on besides the options.
    """

    cfg: StreamsConfig
    tgt_dict: Dictionary
    from_checkpoint = False
    keep_attention = False

    def __init__(
        self,
        cfg: StreamsConfig,
        pairs: List[str],
        dictionaries: Dict[str, Dictionary],
        requested: Optional[LanguagePair] = None,
    ):
        self.pairs, self.requested = pairs, requested
        self.pair: Optional[str] = None
        self._need_attention = False
        self.dictionaries = dictionaries
        # parameters without a gradient in the present update
        self._untouched: List[nn.Parameter] = []
        self.run_state = RunState()
        self.pair_parallel = PairParallel(cfg)
        self.subwords = SubwordsByLanguage()
        self.frozen: List[str] = []
        # fairseq-generate asks for the dictionaries before there is a model
        direction = requested or LanguagePair.parse(pairs[0])
        super().__init__(cfg, dictionaries[direction.sources[0]], dictionaries[direction.target])

    @classmethod
    def training_pairs(cls, cfg: StreamsConfig, requested: Optional[LanguagePair]) -> List[str]:
        """Return the directions that a run with these options trains; systems may add to them.

        Args:
            cfg: the options.
            requested: trained where there is no --lang-pairs.
        """
        return parse_lang_pairs(cfg.lang_pairs) if cfg.lang_pairs else [str(requested)]

    @classmethod
    def schedule_of(cls, cfg: StreamsConfig) -> str:
        """Return the schedule of a run with these options; systems may choose by the pairs."""
        return str(cfg.schedule)

    @property
    def schedule(self) -> str:
        """Return which pairs each update trains on: one of ``SCHEDULES``."""
        return self.schedule_of(self.cfg)

    @property
    def max_source_tokens(self) -> int:
        """Return the longest source in the data, to which --truncate-source cuts."""
        return self.cfg.max_source_positions

    @classmethod
    def setup_task(cls, cfg: StreamsConfig, **kwargs: Any) -> "StreamsTask":
        """Return the task of the options; ValueError, naming the option, where they do not fit."""
        paths = utils.split_paths(cfg.data) if cfg.data else []
        if not paths or not os.path.isdir(paths[0]):
            raise ValueError(f"data {cfg.data!r}: not a folder made by fairseq-preprocess")
        requested = requested_direction(cfg, paths[0])
        if cfg.left_pad_target:
            raise ValueError("--left-pad-target True: these models need targets padded right")
        pairs = cls.training_pairs(cfg, requested)
        # both are given for inference alone, which has no schedule
        if not (cfg.lang_pairs and requested):
            schedule = cls.schedule_of(cfg)
            check_schedule(schedule, pairs, cfg.main_pair, cfg.schedule_temperature)
            check_join_at(parse_join_at(cfg.join_at, pairs), schedule, cfg.main_pair)
        langs = languages(pairs)
        # at inference -s and -t may name others, which the checkpoint's model knows
        if requested:
            langs += [*requested.sources, requested.target]
        dictionaries = {lang: load_dictionary(paths, lang) for lang in dict.fromkeys(langs)}
        return cls(cfg, pairs, dictionaries, requested)

    # ---------------------------------------------------------------- model

    def build_model(self, cfg: Any, from_checkpoint: bool = False) -> BaseFairseqModel:
        """Build the model for the pairs of the run or, from a checkpoint, of the checkpoint."""
        self.from_checkpoint = from_checkpoint
        stored = stored_pairs(cfg) if from_checkpoint else []
        if stored:
            self.pairs = stored
            paths = utils.split_paths(self.cfg.data)
            for lang in languages(self.pairs):
                if lang not in self.dictionaries:
                    self.dictionaries[lang] = load_dictionary(paths, lang)
            self.choose_direction()
        else:
            if self.cfg.bpe_models:
                raise ValueError(
                    f"--bpe-models {self.cfg.bpe_models!r}: only fairseq-interactive and "
                    "fairseq-generate know texts; allowed in training: leave it out"
                )
            if self.cfg.lang_pairs and self.requested:
                raise ValueError(
                    f"--lang-pairs {self.cfg.lang_pairs} and -s {self.requested.source} "
                    f"-t {self.requested.target}: training takes one or the other"
                )
            store_pairs(cfg, self.pairs)
        # not TranslationTask's, which builds its own BLEU
        model = FairseqTask.build_model(self, cfg, from_checkpoint)
        if not from_checkpoint:
            self._freeze(model)  # first: the next ones ask for ``trained_pairs``
            self.pair_patience = self.build_patience()
        if self.cfg.pair_parallel and not from_checkpoint:
            self.pair_parallel.sizes = pair_sizes(model, self.trained_pairs)
        if self.cfg.eval_bleu:
            self.bleu = self._build_bleu(model)
        return model

    def _freeze(self, model: nn.Module) -> None:
        """Freeze what --train-only leaves out; pairs of which nothing is left take no part."""
        if self.cfg.train_only:
            train_only(model, self.cfg.train_only)
            self.frozen = frozen_pairs(model, self.pairs)
            check_frozen(self.frozen, self.cfg, self.pairs, self.schedule)

    def build_patience(self) -> PairPatience:
        """Return what lets pairs leave that stop improving; systems may decide otherwise."""
        return PairPatience(self.cfg, self.trained_pairs, self.joins, self.run_state)

    @property
    def trained_pairs(self) -> List[str]:
        """Return the pairs that take part in the updates."""
        return [pair for pair in self.pairs if pair not in self.frozen]

    def can_translate(self, pair: str) -> bool:
        """True if a model of ``self.pairs`` translates ``pair``; systems may allow more."""
        return pair in self.pairs

    def choose_direction(self) -> None:
        """Make -s and -t the task's direction; ValueError if the model does not translate it."""
        if not self.requested:
            return
        if not self.can_translate(str(self.requested)):
            raise ValueError(
                f"-s {self.requested.source} -t {self.requested.target}: the checkpoint translates "
                + ", ".join(self.pairs)
            )
        self.pair = str(self.requested)

    def scorer(self) -> PairBleu:
        """Return what scores validation batches with --eval-bleu; systems may score more."""
        return PairBleu(self.cfg, self.dictionaries)

    def _build_bleu(self, model: Any) -> PairBleu:
        """Return the scorer with a generator for each pair that is validated."""
        bleu, target = self.scorer(), self.tgt_dict
        for pair in self._logged_pairs():
            # fairseq gives it to the generator
            self.tgt_dict = self.dictionaries[LanguagePair.parse(pair).target]
            models = [model.direction(pair)]
            generator = self.build_search(pair, models, bleu.generation)
            bleu.generators[pair] = generator
        self.tgt_dict = target
        return bleu

    def build_generator(self, models: List[BaseFairseqModel], args: Any, **options: Any) -> Any:
        """Return the search by ``common/beam_search.py`` over the models' chosen direction."""
        replaces = getattr(args, "replace_unk", None) is not None
        aligns = replaces or bool(getattr(args, "print_alignment", None))
        self._need_attention = self.keep_attention or aligns
        return self.build_search(self.pair, self._directions(models), args, **options)

    def build_search(
        self, pair: Optional[str], directions: List[Direction], args: Any, **options: Any
    ) -> Any:
        """Return the search by ``common/beam_search.py`` for the models of a pair."""
        return super().build_generator(directions, args, **fast_search(args, options))

    def inference_step(
        self, generator: Any, models: List[BaseFairseqModel], *more: Any, **options: Any
    ) -> List[List[Sample]]:
        """Return the hypotheses of every sentence in the chosen direction."""
        return super().inference_step(generator, self._directions(models), *more, **options)

    def _directions(self, models: Sequence[Any]) -> List[Any]:
        """Return the chosen direction of each model; ValueError where none is chosen."""
        if self.pair is None:
            raise ValueError(
                f"-s and -t: choose a direction that the checkpoint translates: "
                f"{', '.join(self.pairs)}"
            )
        return [model.direction(self.pair, self._need_attention) for model in models]

    # ---------------------------------------------------------------- lines that are typed

    def build_bpe(self, args: Any) -> Any:
        """Return what joins the target's sub-words; what cuts the sources goes to ``subwords``."""
        if not self.cfg.bpe_models:
            return super().build_bpe(args)
        assert self.requested is not None  # there is something to translate
        self.subwords, target = build_subwords(
            self.cfg.bpe_models, args, self.requested, super().build_bpe
        )
        return target

    def get_interactive_tokens_and_lengths(
        self, lines: List[str], encode_fn: Callable[..., str]
    ) -> Tuple[List[Tensor], List[int]]:
        """Return tokens and lengths of lines, cut by the sub-words of the source language."""
        source = self.requested.source if self.requested else ""
        encode = partial(self.subwords.encode, source, encode_fn=encode_fn)
        return super().get_interactive_tokens_and_lengths(lines, encode)

    # ---------------------------------------------------------------- data

    @property
    def joins(self) -> Dict[str, int]:
        """Return {pair: updates of the run before it takes part}, of those in --join-at."""
        return parse_join_at(self.cfg.join_at, self.pairs)

    def load_dataset(
        self, split: str, epoch: int = 1, combine: bool = False, **kwargs: Any
    ) -> None:
        """Load all pairs of the split as one dataset or, at inference, the chosen direction's own.

        Several data folders take turns in training.
        """
        paths = utils.split_paths(self.cfg.data)
        path = paths[(epoch - 1) % len(paths)] if split == self.cfg.train_subset else paths[0]
        if self.pair:
            self.datasets[split] = self._load_pair(path, split, self.pair, combine)
            return
        is_trained = split == self.cfg.train_subset and not self.from_checkpoint
        pairs, sets = self.trained_pairs if is_trained else self.pairs, None
        if is_trained and self.schedule == "joint":
            find = partial(prefixes, path, split, combine=combine, impl=self.cfg.dataset_impl)
            sets = sentence_sets({pair: find(pair) for pair in pairs})
        self.datasets[split] = StreamsDataset(
            {pair: self._load_pair(path, split, pair, combine) for pair in pairs}, sets
        )

    def _load_pair(self, path: str, split: str, pair: str, combine: bool) -> LanguagePairDataset:
        """Return the sentences of a pair; systems may add to them."""
        is_translated = self.pair is not None
        return load_pair(
            self.cfg,
            self.dictionaries,
            path,
            split,
            pair,
            combine,
            is_translated,
            self.max_source_tokens,
        )

    def get_batch_iterator(
        self,
        dataset: FairseqDataset,
        max_tokens: Optional[int] = None,
        max_sentences: Optional[int] = None,
        max_positions: Any = None,
        ignore_invalid_inputs: bool = False,
        required_batch_size_multiple: int = 1,
        seed: int = 1,
        num_shards: int = 1,
        disable_iterator_cache: bool = False,
        update_epoch_batch_itr: bool = False,
        grouped_shuffling: bool = False,
        data_buffer_size: int = 0,
        **options: Any,
    ) -> EpochBatchIterator:
        """Return fairseq's iterator; for a ``StreamsDataset`` in the order of ``--schedule``."""
        sizes = dict(
            max_tokens=max_tokens,
            max_sentences=max_sentences,
            required_batch_size_multiple=required_batch_size_multiple,
        )
        if not isinstance(dataset, StreamsDataset):
            return super().get_batch_iterator(
                dataset,
                seed=seed,
                num_shards=num_shards,
                disable_iterator_cache=disable_iterator_cache,
                update_epoch_batch_itr=update_epoch_batch_itr,
                grouped_shuffling=grouped_shuffling,
                data_buffer_size=data_buffer_size,
                max_positions=max_positions,
                ignore_invalid_inputs=ignore_invalid_inputs,
                **sizes,
                **options,
            )
        if grouped_shuffling:
            raise ValueError(
                "--grouped-shuffling: --schedule decides the order of several pairs; leave it out"
            )
        reusable = not (disable_iterator_cache or update_epoch_batch_itr)  # as in fairseq
        if reusable and dataset in self.dataset_to_epoch_iter:
            return self.dataset_to_epoch_iter[dataset]
        filter_by_size = partial(
            self.filter_indices_by_size, ignore_invalid_inputs=ignore_invalid_inputs
        )
        batches = pair_batches(dataset, seed, sizes, max_positions, filter_by_size)
        plan = self._plan(dataset, batches, seed, num_shards)
        options.update(seed=seed, num_shards=num_shards, buffer_size=data_buffer_size)
        iterator = StreamsIterator(dataset, plan, **options)
        if reusable:
            self.dataset_to_epoch_iter[dataset] = iterator
        return iterator

    def _plan(
        self, dataset: StreamsDataset, batches: Dict[str, List[Batch]], seed: int, num_shards: int
    ) -> Union[TrainingPlan, ValidationPlan]:
        """Return the order of the batches, in training or of a validation."""
        if self.from_checkpoint or dataset is not self.datasets.get(self.cfg.train_subset):
            return ValidationPlan(dataset, batches, num_shards)
        check_patience(self.cfg.pair_patience, self.cfg.disable_validation)
        update_freq = list(self.cfg.update_freq)
        options: Dict[str, Any] = dict(
            dataset=dataset,
            batches=batches,
            schedule=self.schedule,
            seed=seed,
            # of several --update-freq the last holds for all later epochs
            group=lambda epoch: num_shards * update_freq[min(epoch, len(update_freq)) - 1],
            main_pair=self.cfg.main_pair,
            temperature=self.cfg.schedule_temperature,
            join_at=self.joins,
            state=self.run_state,
        )
        plan: TrainingPlan
        if self.cfg.pair_parallel and num_shards > 1:
            assignment = self.pair_parallel.assign(batches, num_shards, self.schedule)
            plan = PairParallelPlan(assignment, **options)
        else:
            plan = TrainingPlan(**options)
        # with sharded data other epochs have other lengths
        if not self.has_sharded_data(self.cfg.train_subset):
            plan.check_joins(self.cfg.max_update, self.cfg.max_epoch)
        return plan
