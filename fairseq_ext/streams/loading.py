"""The part of ``StreamsTask`` that reads data and decides the order of batches."""

import logging
from functools import partial
from typing import Any, Dict, List, Optional, Union

from fairseq import utils
from fairseq.data import Dictionary, FairseqDataset, LanguagePairDataset
from fairseq.data.iterators import EpochBatchIterator

from ..compat.training.after_loading import CheckpointLoading
from .batching import pair_batches
from .config import StreamsConfig
from .dataset import Batch, StreamsDataset
from .iterator import StreamsIterator
from .language_pair import MONO, LanguagePair, label_of, pair_of, reverse_of
from .marked_sources import MarkedSources, with_sources
from .mixed_plan import MixedPlan
from .monolingual import load_lines
from .pair_data import load_pair
from .pair_parallel_plan import PairParallelPlan
from .patience import check_patience
from .plan import TrainingPlan, ValidationPlan
from .schedule import parse_join_at
from .sentence_sets import prefixes, sentence_sets
from .state import RunState
from .steps import Steps
from .synthetic import folder_of

logger = logging.getLogger(__name__)


class Loading(Steps):
    """Reads the pairs of a split; see ``StreamsTask`` for the attributes."""

    dictionaries: Dict[str, Dictionary]
    from_checkpoint: bool
    run_state: RunState
    frozen: List[str]

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

    @property
    def trained_pairs(self) -> List[str]:
        """Return the pairs that take part in the updates."""
        return [pair for pair in self.pairs if pair not in self.frozen]

    @property
    def joins(self) -> Dict[str, int]:
        """Return {pair: updates of the run before it takes part}, of those in --join-at."""
        return parse_join_at(self.cfg.join_at, self.pairs, self.synthetic)

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
        parts = {pair: self._load_pair(path, split, pair, combine) for pair in pairs}
        for stream in self.synthetic if is_trained else ():
            parts[stream] = self._load_stream(path, split, stream, combine)
        self.datasets[split] = StreamsDataset(parts, sets and {**dict(zip(parts, parts)), **sets})

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

    def _load_stream(
        self, path: str, split: str, stream: str, combine: bool
    ) -> LanguagePairDataset:
        """Return the lines of --monolingual, or the pairs in the folder of the stream's label."""
        pair = pair_of(stream)
        source, target = LanguagePair.parse(pair)
        if label_of(stream) == MONO:
            # the line is the source of the other direction, which translates it
            marks = self.source_marks(reverse_of(pair))
            words = self.dictionaries[target]
            return load_lines(self.cfg, words, path, split, target, combine, marks)
        folder = folder_of(path, stream, (source, target))
        dataset = self._load_pair(folder, split, pair, combine)
        if not self.cfg.synthetic_tag:
            return dataset
        tag = [self.dictionaries[source].bos()]
        place = len(self.source_marks(pair))
        return with_sources(dataset, MarkedSources(dataset.src, tag, place))

    def go_on_from(self, loading: CheckpointLoading, updates: int, reset_dataloader: bool) -> None:
        """Take over the run's history with --reset-dataloader; otherwise the iterator does it.

        As the best score of fairseq itself, those of the pairs are forgotten with --reset-meters
        and --reset-optimizer.

        Args:
            loading: of the checkpoint; compat.training tells of it.
            updates: those that the run has done.
            reset_dataloader: True if the data begin anew.
        """
        assert loading.extra_state is not None
        position = loading.extra_state["train_iterator"]
        history = position.get("streams", {})
        of_run = self.run_state.updates_before(position, updates)
        if reset_dataloader and not updates:  # both begin anew
            of_run = 0
        if self.pair_patience is not None:
            self.pair_patience.uncounted = of_run - updates
        is_forgotten = loading.reset_meters or loading.reset_optimizer
        if not reset_dataloader:
            if is_forgotten:  # the iterator reads what is left
                history.update(best={}, waited={})
            return
        if not is_forgotten:
            self.run_state.load_state_dict(history)
        self.run_state.count_epochs_anew(of_run)
        self.run_state.note_added(history, self.synthetic, of_run)
        for pair in self.run_state.left:
            logger.info(
                f"{pair}: has left the run before (--pair-patience) and takes no part; with "
                "--reset-meters it does"
            )

    def source_marks(self, pair: str) -> List[int]:
        """Return the tokens in front of every source of a direction; systems may have some."""
        return []

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
        if options.get("skip_remainder_batch"):
            # it would leave out a whole update, which --join-at and --synthetic-share count
            raise ValueError(
                "--skip-remainder-batch: with --schedule every update has all its batches, and "
                "none is a remainder; leave it out"
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
            # the training set may be validated on, and synthetic pairs have no references
            real = {pair: cut for pair, cut in batches.items() if not label_of(pair)}
            return ValidationPlan(dataset, real, num_shards)
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
        if self.synthetic:
            waits = self.loss_threshold.is_used
            plan = MixedPlan(self.synthetic, self.synthetic_share, waits, **options)
        elif self.cfg.pair_parallel and num_shards > 1:
            assignment = self.pair_parallel.assign(batches, num_shards, self.schedule)
            plan = PairParallelPlan(assignment, **options)
        else:
            plan = TrainingPlan(**options)
        # with sharded data other epochs have other lengths
        if not self.has_sharded_data(self.cfg.train_subset):
            plan.check_joins(self.cfg.max_update, self.cfg.max_epoch)
        return plan
