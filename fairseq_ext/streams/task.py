"""The task base of every system that trains several lang pairs into one model.

Training and validation run on a dict {pair: sample}; inference runs on one direction, chosen by
``-s`` and ``-t``, with the ordinary dataset and the ordinary generator. A model for these tasks

* takes ``forward(src_tokens, src_lengths, prev_output_tokens, pair="de-en")``,
* offers ``direction("de-en", need_attention=False)``: an encoder-decoder model of that direction
  which shares its parameters,
* has ``lang_pairs`` in its config, where the task writes the pairs: checkpoints carry them,
* may offer ``parameter_groups()``: {group: names of parameters}, for --train-only,
* may offer ``pair_parameters("de-en")``: names of those that the pair uses, for --pair-parallel.
"""

import math
import os
from contextlib import nullcontext
from typing import Dict, List

import torch
from fairseq import utils
from fairseq.data import Dictionary, data_utils
from fairseq.tasks import FairseqTask
from fairseq.tasks.translation import TranslationTask, load_langpair_dataset
from omegaconf import OmegaConf, open_dict

from ..common.beam_search import own_search
from .assignment import PairParallelPlan, assign_pairs
from .bleu import PairBleu
from .config import StreamsConfig
from .dataset import StreamsDataset, StreamsIterator, TrainingPlan, ValidationPlan
from .groups import train_only
from .pair_parallel import PairParallel, check_pair_parallel, log_assignment, pair_sizes
from .patience import PairPatience, check_patience
from .schedule import (
    check_direction,
    check_join_at,
    check_schedule,
    parse_join_at,
    parse_lang_pairs,
)
from .state import RunState
from .steps import Steps


def load_dictionary(paths: List[str], lang: str) -> Dictionary:
    """dict.LANG.txt of the first data folder; ValueError, naming the file, when it is not there."""
    name = os.path.join(paths[0], f"dict.{lang}.txt")
    if not os.path.exists(name):
        raise ValueError(
            f"{name}: no dictionary for language {lang!r}; the data folder must come from "
            "fairseq-preprocess and hold dict.LANG.txt for every language of the model"
        )
    return Dictionary.load(name)


class StreamsTask(PairParallel, Steps, PairPatience, TranslationTask):
    """Several lang pairs in training, one direction at inference.

    ``pairs`` are the pairs of the model; ``pair`` is the direction chosen by -s and -t, or None
    while all pairs are trained or validated.
    """

    cfg: StreamsConfig

    def __init__(self, cfg: StreamsConfig, pairs: List[str], dictionaries: Dict[str, Dictionary]):
        self.pairs, self.pair = pairs, None
        self._need_attention = False
        self.dictionaries = dictionaries
        self._untouched: List[torch.nn.Parameter] = []
        self.run_state = RunState()
        source, target = pairs[0].split("-")
        super().__init__(cfg, dictionaries[source], dictionaries[target])

    @classmethod
    def training_pairs(cls, cfg: StreamsConfig) -> List[str]:
        """The directions that a run with these options trains; systems may add to them."""
        if cfg.lang_pairs:
            return parse_lang_pairs(cfg.lang_pairs)
        return [f"{cfg.source_lang}-{cfg.target_lang}"]

    @classmethod
    def setup_task(cls, cfg: StreamsConfig, **kwargs):
        paths = utils.split_paths(cfg.data) if cfg.data else []
        if not paths or not os.path.isdir(paths[0]):
            raise ValueError(f"data {cfg.data!r}: not a folder made by fairseq-preprocess")
        if (cfg.source_lang is None) != (cfg.target_lang is None):
            raise ValueError(
                f"-s {cfg.source_lang} -t {cfg.target_lang}: give both languages or neither"
            )
        if cfg.source_lang is None and not cfg.lang_pairs:
            cfg.source_lang, cfg.target_lang = data_utils.infer_language_pair(paths[0])
            if cfg.source_lang is None:
                raise ValueError(f"{paths[0]}: holds no binarised pair; give -s and -t")
        if cfg.left_pad_target:
            raise ValueError("--left-pad-target True: these models need targets padded right")
        if cfg.source_lang is not None:
            check_direction(cfg.source_lang, cfg.target_lang)
        pairs = cls.training_pairs(cfg)
        check_schedule(str(cfg.schedule), pairs, cfg.main_pair, cfg.schedule_temperature)
        check_join_at(parse_join_at(cfg.join_at, pairs), str(cfg.schedule), cfg.main_pair)
        langs = [lang for pair in pairs for lang in pair.split("-")]
        langs += (cfg.source_lang or "").split("+") + [cfg.target_lang or ""]
        return cls(cfg, pairs, {lang: load_dictionary(paths, lang) for lang in langs if lang})

    # ---------------------------------------------------------------- model

    def build_model(self, cfg, from_checkpoint=False):
        """Build the model for the pairs of the run or, from a checkpoint, of the checkpoint."""
        if from_checkpoint and getattr(cfg, "lang_pairs", None):
            self.pairs = parse_lang_pairs(cfg.lang_pairs)
            paths = utils.split_paths(self.cfg.data)
            for lang in (lang for pair in self.pairs for lang in pair.split("-")):
                if lang not in self.dictionaries:
                    self.dictionaries[lang] = load_dictionary(paths, lang)
            self._choose_direction()
        else:
            if self.cfg.lang_pairs and self.cfg.source_lang:
                raise ValueError(
                    f"--lang-pairs {self.cfg.lang_pairs} and -s {self.cfg.source_lang} "
                    f"-t {self.cfg.target_lang}: training takes one or the other"
                )
            with open_dict(cfg) if OmegaConf.is_config(cfg) else nullcontext():
                cfg.lang_pairs = ",".join(self.pairs)
        model = FairseqTask.build_model(self, cfg, from_checkpoint)
        if self.cfg.train_only and not from_checkpoint:
            train_only(model, self.cfg.train_only)
        if self.cfg.pair_parallel and not from_checkpoint:
            self.pair_uses = pair_sizes(model, self.pairs)
        if self.cfg.eval_bleu:
            self.bleu = self._build_bleu(model)
        return model

    def can_translate(self, pair: str) -> bool:
        """Whether a model of ``self.pairs`` translates ``pair``; systems may allow more."""
        return pair in self.pairs

    def _choose_direction(self):
        if not self.cfg.source_lang:
            return
        pair = f"{self.cfg.source_lang}-{self.cfg.target_lang}"
        if not self.can_translate(pair):
            raise ValueError(
                f"-s {self.cfg.source_lang} -t {self.cfg.target_lang}: the checkpoint translates "
                + ", ".join(self.pairs)
            )
        self.pair = pair
        self.src_dict = self.dictionaries[self.cfg.source_lang.split("+")[0]]
        self.tgt_dict = self.dictionaries[self.cfg.target_lang]

    def scorer(self) -> PairBleu:
        """What scores validation batches with --eval-bleu; systems may score more than BLEU."""
        return PairBleu(self.cfg, self.dictionaries)

    def _build_bleu(self, model) -> PairBleu:
        bleu = self.scorer()
        for pair in self._logged_pairs():
            self.tgt_dict = self.dictionaries[pair.split("-")[1]]
            options = own_search(bleu.generation, {})
            generator = super().build_generator([model.direction(pair)], bleu.generation, **options)
            bleu.generators[pair] = generator
        return bleu

    def build_generator(self, models, args, **options):
        """fairseq's search by ``common/beam_search.py``, over the models' chosen direction."""
        self._need_attention = bool(
            getattr(args, "print_alignment", None) or getattr(args, "replace_unk", None)
        )
        options = own_search(args, options)
        return super().build_generator(self._directions(models), args, **options)

    def inference_step(self, generator, models, *more, **options):
        return super().inference_step(generator, self._directions(models), *more, **options)

    def _directions(self, models):
        if self.pair is None:
            raise ValueError(
                f"-s and -t: choose a direction that the checkpoint translates: "
                f"{', '.join(self.pairs)}"
            )
        return [model.direction(self.pair, self._need_attention) for model in models]

    # ---------------------------------------------------------------- data

    @property
    def joins(self) -> Dict[str, int]:
        """{pair: updates of the run before it takes part}, of those in --join-at."""
        return parse_join_at(self.cfg.join_at, self.pairs)

    def load_dataset(self, split, epoch=1, combine=False, **kwargs):
        """All pairs of the split as one dataset or, at inference, the chosen direction's own."""
        if math.isnan(epoch):  # the run is over: StreamsIterator.next_epoch_idx
            return
        paths = utils.split_paths(self.cfg.data)
        path = paths[(epoch - 1) % len(paths)] if split == self.cfg.train_subset else paths[0]
        if self.pair:
            self.datasets[split] = self._load_pair(path, split, self.pair, combine)
        else:
            self.datasets[split] = StreamsDataset(
                {pair: self._load_pair(path, split, pair, combine) for pair in self.pairs}
            )

    def _load_pair(self, path: str, split: str, pair: str, combine: bool):
        source, target = pair.split("-")
        nothing = f"{path}: {split} of the pair {pair} holds no sentence"
        try:
            dataset = load_langpair_dataset(
                path,
                split,
                source,
                self.dictionaries[source],
                target,
                self.dictionaries[target],
                combine=combine,
                dataset_impl=self.cfg.dataset_impl,
                upsample_primary=self.cfg.upsample_primary,
                left_pad_source=self.cfg.left_pad_source,
                left_pad_target=self.cfg.left_pad_target,
                max_source_positions=self.cfg.max_source_positions,
                max_target_positions=self.cfg.max_target_positions,
                load_alignments=self.cfg.load_alignments,
                truncate_source=self.cfg.truncate_source,
                num_buckets=self.cfg.num_batch_buckets,
                shuffle=(split != "test"),
                pad_to_multiple=self.cfg.required_seq_len_multiple,
            )
        except FileNotFoundError as error:
            raise FileNotFoundError(
                f"{path}: no {split}.{source}-{target} or {split}.{target}-{source} "
                f"for the pair {pair}"
            ) from error
        except ValueError as error:
            if "mmap an empty file" not in str(error):
                raise
            raise ValueError(nothing) from error
        if dataset.tgt is None and not self.pair:
            raise FileNotFoundError(
                f"{path}: {split} of the pair {pair} has no sentences of {target}"
            )
        if len(dataset) == 0:
            raise ValueError(nothing)
        return dataset

    def get_batch_iterator(
        self,
        dataset,
        max_tokens=None,
        max_sentences=None,
        max_positions=None,
        ignore_invalid_inputs=False,
        required_batch_size_multiple=1,
        seed=1,
        num_shards=1,
        disable_iterator_cache=False,
        update_epoch_batch_itr=False,
        grouped_shuffling=False,
        data_buffer_size=0,
        **options,
    ):
        """As in FairseqTask; for a ``StreamsDataset`` in the order of ``--schedule``."""
        sizes = dict(
            max_tokens=max_tokens,
            max_sentences=max_sentences,
            required_batch_size_multiple=required_batch_size_multiple,
        )
        limits = dict(max_positions=max_positions, ignore_invalid_inputs=ignore_invalid_inputs)
        if not isinstance(dataset, StreamsDataset):
            return super().get_batch_iterator(
                dataset,
                seed=seed,
                num_shards=num_shards,
                disable_iterator_cache=disable_iterator_cache,
                update_epoch_batch_itr=update_epoch_batch_itr,
                grouped_shuffling=grouped_shuffling,
                data_buffer_size=data_buffer_size,
                **limits,
                **sizes,
                **options,
            )
        if math.isnan(options.get("epoch", 1)):
            return self._training_iterator
        reusable = not (disable_iterator_cache or update_epoch_batch_itr)
        if reusable and dataset in self.dataset_to_epoch_iter:
            return self.dataset_to_epoch_iter[dataset]
        batches = self._batches(dataset, seed, sizes, **limits)
        iterator = StreamsIterator(
            dataset,
            self._plan(dataset, batches, seed, num_shards),
            seed=seed,
            num_shards=num_shards,
            buffer_size=data_buffer_size,
            **options,
        )
        if dataset is self.datasets.get(self.cfg.train_subset):
            self._training_iterator = iterator
        if reusable:
            self.dataset_to_epoch_iter[dataset] = iterator
        return iterator

    def _directions_share_batches(self) -> bool:
        """Whether an update has the same sentences in both directions of a language pair."""
        both = {"-".join(reversed(pair.split("-"))) for pair in self.pairs} & set(self.pairs)
        return str(self.cfg.schedule) == "joint" and bool(both)

    def _batches(self, dataset, seed, sizes, max_positions, ignore_invalid_inputs):
        """{pair: minibatches of the pair's own sentence numbers}."""
        if max_positions is not None and self._directions_share_batches():
            max_positions = (min(max_positions), min(max_positions))
        batches = {}
        for pair, part in dataset.datasets.items():
            with data_utils.numpy_seed(seed):
                indices = part.ordered_indices()
            if max_positions is not None:
                indices = self.filter_indices_by_size(
                    indices, part, max_positions, ignore_invalid_inputs
                )
            batches[pair] = [list(batch) for batch in part.batch_by_size(indices, **sizes)]
            if not batches[pair]:
                raise ValueError(
                    f"pair {pair}: no sentence is left within --max-source-positions and "
                    f"--max-target-positions {max_positions}"
                )
        return batches

    def _plan(self, dataset, batches, seed, num_shards):
        if dataset is not self.datasets.get(self.cfg.train_subset):
            return ValidationPlan(dataset, batches, num_shards)
        check_patience(self.cfg.pair_patience, self.cfg.disable_validation)
        update_freq = list(self.cfg.update_freq)
        options = dict(
            dataset=dataset,
            batches=batches,
            schedule=str(self.cfg.schedule),
            seed=seed,
            group=lambda epoch: num_shards * update_freq[min(epoch, len(update_freq)) - 1],
            main_pair=self.cfg.main_pair,
            temperature=self.cfg.schedule_temperature,
            join_at=self.joins,
            state=self.run_state,
        )
        if self.cfg.pair_parallel and num_shards > 1:
            plan = PairParallelPlan(self._assign_pairs(batches, num_shards), **options)
        else:
            plan = TrainingPlan(**options)
        if not self.has_sharded_data(self.cfg.train_subset):  # else other epochs' lengths differ
            plan.check_joins(self.cfg.max_update, self.cfg.max_epoch)
        return plan

    def _assign_pairs(self, batches, workers: int):
        """The pairs of each worker, found once in a run."""
        if self.assignment is None:
            check_pair_parallel(self.cfg, self.pairs, workers)
            loads = {pair: len(found) for pair, found in batches.items()}
            self.assignment = assign_pairs(loads, self.pair_uses, workers)
            log_assignment(self.assignment, loads, self.pair_uses)
        return self.assignment
