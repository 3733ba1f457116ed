"""Routed multi-task learning's task: a main lang pair and auxiliary ones, from text to anything."""

from dataclasses import dataclass, field
from functools import partial
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

import torch
from fairseq import metrics, utils
from fairseq.criterions import FairseqCriterion
from fairseq.data import Dictionary, LanguagePairDataset
from fairseq.dataclass import ChoiceEnum
from fairseq.models import BaseFairseqModel
from fairseq.optim import FairseqOptimizer
from fairseq.search import LengthConstrainedBeamSearch
from fairseq.sequence_generator import SequenceGenerator
from fairseq.tasks import FairseqTask, register_task
from omegaconf import II

from ..common.beam_search import Hypotheses
from ..common.named_values import named_values
from ..streams.config import StreamsConfig
from ..streams.direction import Direction
from ..streams.lang_pairs import parse_lang_pairs
from ..streams.language_pair import LanguagePair, reverse_of, sides, source_of, target_of
from ..streams.marked_sources import marked, with_sources
from ..streams.metrics import log_bleu_summary, log_likelihoods, log_pairs
from ..streams.pair_data import load_dictionary
from ..streams.schedule import SCHEDULES
from ..streams.stored_pairs import stored_pairs
from ..streams.subwords import MARKS
from ..streams.task import StreamsTask
from .objective import Weighted, minibatch_size, note_shares
from .task_patience import HALVED, TaskPatience, check_task_patience
from .task_tokens import (
    PrintedSources,
    TaskDictionary,
    add_task_tokens,
    token_of,
    without_task_token,
)
from .validation import TaskScores, log_scores, parse_target_kinds
from .well_formed import Constraint, constraint_of


@dataclass
class RoutedMtlConfig(StreamsConfig):
    """Options of ``routed_mtl``: those of several pairs, with the paper's schedule."""

    schedule: ChoiceEnum(SCHEDULES) = field(
        default="main+aux",
        metadata={
            "help": "pairs that take part in each update: main+aux (the paper: --main-pair and a "
            "random other pair), joint, cycle or temperature; with one pair there is no choice"
        },
    )
    task_gamma: Optional[str] = field(
        default=None,
        metadata={
            "help": "gamma_m, weight of a task in the objective, e.g. en-ner=0.5; the other tasks "
            "have 1 (paper: 1 for all)"
        },
    )
    task_patience: int = field(
        default=0,
        metadata={
            "help": "number of validations in a row without a lower loss after which the weight of "
            "a task is halved (paper: its learning rate, each time); 0 = off"
        },
    )
    target_kinds: str = field(
        default="ner=tags,parse=trees,tree=trees,amr=graphs",
        metadata={
            "help": "kinds of target languages, for the scores of --eval-bleu: LANG=KIND with "
            "tags, trees or graphs (accuracy, exact match, F1) or text (BLEU and TER; the default)"
        },
    )
    well_formed_targets: bool = field(
        default=False,
        metadata={
            "help": "restrict the search to well-formed targets of --target-kinds: as many tags as "
            "words, trees and graphs whose brackets match; also in --eval-bleu"
        },
    )
    # what the size of a minibatch is counted in
    sentence_avg: bool = II("optimization.sentence_avg")


def parse_gamma(text: Optional[str], pairs: List[str]) -> Dict[str, float]:
    """Return {"en-vi": 1.0, "en-ner": 0.5} of "en-ner=0.5"; ValueError for other texts."""
    gamma, named = dict.fromkeys(pairs, 1.0), set()
    for entry, pair, number in named_values(text):
        if pair not in gamma:
            raise ValueError(f"--task-gamma {entry!r}: {pair!r} is none of {', '.join(pairs)}")
        if pair in named:
            raise ValueError(f"--task-gamma {text!r}: {pair!r} is named twice")
        named.add(pair)
        try:
            gamma[pair] = float(number)
        except ValueError:
            gamma[pair] = -1.0
        if not 0 < gamma[pair] < float("inf"):
            raise ValueError(f"--task-gamma {entry!r}: {number!r} must be a number greater than 0")
    return gamma


@register_task("routed_mtl", dataclass=RoutedMtlConfig)
class RoutedMtlTask(StreamsTask):
    """Trains --main-pair with auxiliary pairs; the task is told by the source's first token.

    Objective (Eq. 15 of the card): sum over tasks m of gamma_m / |D_m| times the log-likelihood of
    D_m. Every update takes a minibatch of the main task and one of an auxiliary task.

    Deviation: the paper halves the learning rate of a task when its dev score drops. One optimiser
    has one learning rate, so the task's weight in the objective is halved instead.
    """

    cfg: RoutedMtlConfig
    dictionary_class = TaskDictionary
    criterion: Optional[FairseqCriterion] = None

    def __init__(self, cfg: RoutedMtlConfig, *more: Any, **options: Any):
        super().__init__(cfg, *more, **options)
        # by default those of the training, once its checkpoint has been read
        self.target_kinds = cfg.target_kinds

    @classmethod
    def setup_task(cls, cfg: RoutedMtlConfig, **kwargs: Any) -> "RoutedMtlTask":
        """Return the task of the options; ValueError, naming the option, where they do not fit."""
        pairs = parse_lang_pairs(cfg.lang_pairs) if cfg.lang_pairs else []
        if pairs and cfg.main_pair is not None and cfg.main_pair not in pairs:
            raise ValueError(f"--main-pair {cfg.main_pair!r}: must be one of {', '.join(pairs)}")
        if cfg.num_batch_buckets:
            raise ValueError(f"--num-batch-buckets {cfg.num_batch_buckets}: not with routed_mtl")
        check_task_patience(cfg)
        # the default, and options that are shared by several runs, name more than there is
        is_complete = len(pairs) > 1 and cfg.target_kinds != RoutedMtlConfig.target_kinds
        parse_target_kinds(cfg.target_kinds, sides(pairs)[1] if is_complete else ())
        task = super().setup_task(cfg, **kwargs)
        parse_gamma(cfg.task_gamma, task.pairs)
        return task

    @classmethod
    def schedule_of(cls, cfg: RoutedMtlConfig) -> str:  # type: ignore[override]  # its own options
        """Return the schedule; where there is no auxiliary pair, main+aux has but one to take."""
        schedule = super().schedule_of(cfg)
        pairs = parse_lang_pairs(cfg.lang_pairs) if cfg.lang_pairs else []
        return "cycle" if schedule == "main+aux" and len(pairs) < 2 else schedule

    # ---------------------------------------------------------------- task tokens

    def build_model(self, cfg: Any, from_checkpoint: bool = False) -> BaseFairseqModel:
        """Return the model; the source dictionaries get the task tokens before.

        Raises ValueError for --well-formed-targets in a training that searches nothing.
        """
        # of a checkpoint its own pairs: its embedding has a row for the token of each
        self._add_tokens((from_checkpoint and stored_pairs(cfg)) or self.pairs)
        if not from_checkpoint:
            if self.cfg.well_formed_targets and not self.cfg.eval_bleu:
                raise ValueError("--well-formed-targets does nothing without --eval-bleu")
            # for the checkpoints
            self.state.merge_state_dict({"target_kinds": self.target_kinds})
        return super().build_model(cfg, from_checkpoint)

    def load_state_dict(self, state_dict: Dict[str, Any]) -> None:
        """Take --target-kinds of the training, unless the command has been given others."""
        super().load_state_dict(state_dict)
        kinds = state_dict.get("target_kinds")
        if kinds and self.target_kinds == RoutedMtlConfig.target_kinds:
            self.target_kinds = kinds

    def _add_tokens(self, pairs: List[str]) -> None:
        """Add the task tokens of ``pairs`` to the dictionaries of their sources."""
        for lang in sides(pairs)[0]:
            if lang not in self.dictionaries:
                paths = utils.split_paths(self.cfg.data)
                self.dictionaries[lang] = load_dictionary(paths, lang, self.dictionary_class)
            tasks = [pair for pair in pairs if source_of(pair) == lang]
            add_task_tokens(self.dictionaries[lang], tasks)

    def task_token(self, pair: str) -> int:
        """Return the index of the token that begins every source of a task."""
        self._add_tokens(self.pairs)
        dictionary = self.dictionaries[source_of(pair)]
        return dictionary.index(token_of(pair))

    def _load_pair(self, path: str, split: str, pair: str, combine: bool) -> LanguagePairDataset:
        """Return the sentences of a pair, each source behind the task token."""
        plain = super()._load_pair(path, split, pair, combine)
        return with_sources(plain, marked(plain.src, self.source_marks(pair)))

    def source_marks(self, pair: str) -> List[int]:
        """Return the tokens in front of every source of a direction: the task token."""
        return [self.task_token(pair)]

    @property
    def back_translated_pairs(self) -> List[str]:
        """Return the main pair and its reverse; ValueError for --monolingual without one."""
        if self.cfg.main_pair is None:
            raise ValueError(
                f"--monolingual {self.cfg.monolingual}: the lines are for --main-pair; name it"
            )
        both = (self.cfg.main_pair, reverse_of(self.cfg.main_pair))
        return [pair for pair in both if pair in self.pairs]

    @property
    def max_source_tokens(self) -> int:
        """Return --max-source-positions without the place that the task token takes."""
        return self.cfg.max_source_positions - 1

    def build_dataset_for_inference(
        self, src_tokens: List[torch.Tensor], src_lengths: Sequence[int], **options: Any
    ) -> LanguagePairDataset:
        """Return the lines that fairseq-interactive and the hub interface translate."""
        if self.pair is None:
            raise ValueError(f"-s and -t: choose one of {', '.join(self.pairs)}")
        token = self.task_token(self.pair)
        sources = [torch.cat([tokens.new_tensor([token]), tokens]) for tokens in src_tokens]
        lengths = [len(tokens) for tokens in sources]
        return super().build_dataset_for_inference(sources, lengths, **options)

    # ---------------------------------------------------------------- inference

    @property
    def source_dictionary(self) -> Optional[Dictionary]:
        """Return the dictionary by which fairseq-generate prints sources (S-); None in training."""
        dictionary = super().source_dictionary
        return dictionary and PrintedSources(dictionary)

    def build_search(
        self, pair: Optional[str], directions: List[Direction], args: Any, **options: Any
    ) -> SequenceGenerator:
        """Return the search of a pair; lengths count words, not the task token."""
        # a class that was asked for takes no such arguments
        if options.get("seq_gen_cls") is None:
            constraint = self._constraint(pair) if pair else None
            options["extra_gen_cls_kwargs"] = {
                **(options.get("extra_gen_cls_kwargs") or {}),
                "first_tokens": 1,
                **({} if constraint is None else {"constraint": constraint}),
            }
        generator = super().build_search(pair, directions, args, **options)
        search = getattr(generator, "search", None)  # --print-alignment's scorer has none
        if isinstance(search, LengthConstrainedBeamSearch):  # --match-source-len
            # its limits follow the length of the source, which counts the task token
            search.min_len_b -= 1
            search.max_len_b -= 1
        return generator

    def build_generator(self, models: List[BaseFairseqModel], args: Any, **options: Any) -> Any:
        """Return the search in the chosen direction; ValueError for text that is well-formed."""
        if self.cfg.well_formed_targets and self.pair:
            target = LanguagePair.parse(self.pair).target
            kinds = parse_target_kinds(self.target_kinds)
            if kinds.get(target, "text") == "text":
                raise ValueError(
                    f"--well-formed-targets: --target-kinds {self.target_kinds} makes {target} "
                    "a text, and any text is well-formed; leave it out, or name the kind of "
                    f"{target}"
                )
        return super().build_generator(models, args, **options)

    def is_cut(self, lang: str, bpe: Optional[str]) -> bool:
        """True unless a language is tags, trees or graphs without the marks of sub-words."""
        kind, mark = parse_target_kinds(self.target_kinds).get(lang, "text"), MARKS.get(bpe or "")
        symbols = self.dictionaries[lang].symbols
        return kind == "text" or mark is None or any(mark in symbol for symbol in symbols)

    def _constraint(self, pair: str) -> Optional[Constraint]:
        """Return what --well-formed-targets asks of a pair's targets."""
        if not self.cfg.well_formed_targets:
            return None
        self._add_tokens(self.pairs)
        source, target = LanguagePair.parse(pair)
        kind = parse_target_kinds(self.target_kinds).get(target, "text")
        dictionaries = self.dictionaries[source], self.dictionaries[target]
        return constraint_of(kind, *dictionaries, (source, target))

    def inference_step(
        self,
        generator: SequenceGenerator,
        models: List[BaseFairseqModel],
        *more: Any,
        **options: Any,
    ) -> Hypotheses:
        """Return the hypotheses of every sentence; alignments count words, not the task token."""
        sentences = super().inference_step(generator, models, *more, **options)
        # fairseq aligns with all source positions, the first of which is the task token
        for hypothesis in (hypothesis for beam in sentences for hypothesis in beam):
            hypothesis["alignment"] = without_task_token(hypothesis["alignment"])
        return sentences

    # ---------------------------------------------------------------- objective

    def task_weights(self) -> Dict[str, float]:
        """Return {pair: gamma_m, halved as often as --task-patience has asked for it}."""
        # the run's state travels with the checkpoints: a resumed run goes on with these weights
        halved = self.run_state.more.get(HALVED, {})
        gamma = parse_gamma(self.cfg.task_gamma, self.pairs)
        # gamma_m 2^-k after k halvings
        return {pair: gamma[pair] * halved.get(pair, 1.0) for pair in self.pairs}

    def build_criterion(self, cfg: Any) -> FairseqCriterion:
        """Return the criterion, and note it: its counts weigh the minibatches of an update."""
        self.criterion = super().build_criterion(cfg)
        return self.criterion

    def begin_update(self, samples: List[Any], device: torch.device) -> None:
        """Note in every minibatch of the update how large it is among those of its task.

        compat.training calls it. With --update-freq and several workers the mean of a task is then
        that over all its minibatches.
        """
        names = [*self.pairs, *self.synthetic]
        size_of = partial(minibatch_size, self.criterion, bool(self.cfg.sentence_avg))
        note_shares(samples, names, size_of, device)

    def train_step(
        self,
        sample: Mapping[str, Any],
        model: BaseFairseqModel,
        criterion: FairseqCriterion,
        optimizer: FairseqOptimizer,
        update_num: int,
        ignore_grad: bool = False,
        ema_model: Optional[BaseFairseqModel] = None,
    ) -> Tuple[Any, Any, Any]:
        """Take the gradients of the weighted objective, as ``StreamsTask`` does."""
        weighted = Weighted(criterion, self.task_weights(), max(len(sample), 1))
        return super().train_step(
            sample, model, weighted, optimizer, update_num, ignore_grad, ema_model
        )

    def build_patience(self) -> TaskPatience:
        """Return what lets pairs leave that stop improving, or halves their weights."""
        return TaskPatience(
            self.cfg,
            self.trained_pairs,
            self.joins,
            self.run_state,
            kinds=self.kinds(),
            weights=self.task_weights,
        )

    # ---------------------------------------------------------------- scores

    def kinds(self) -> Dict[str, str]:
        """Return {pair: what its target is}."""
        kinds = parse_target_kinds(self.target_kinds)
        return {pair: kinds.get(target_of(pair), "text") for pair in self._logged_pairs()}

    def scorer(self) -> TaskScores:
        """Return what scores validation batches with --eval-bleu, by kind of target."""
        return TaskScores(self.cfg, self.dictionaries, self.kinds())

    def reduce_metrics(
        self, logging_outputs: List[Dict[str, Any]], criterion: FairseqCriterion
    ) -> None:
        """Log every task's loss, weight and scores."""
        FairseqTask.reduce_metrics(self, logging_outputs, criterion)
        # StreamsTask would log BLEU of all pairs; here those that are no texts have none
        kinds, weights = self.kinds(), self.task_weights()
        scored = any("_ter_edits" in log for log in logging_outputs)
        for pair, kind in kinds.items():
            if pair in weights:
                # weight 0: the newest value is shown in place of a mean
                metrics.log_scalar(f"{pair}_weight", weights[pair], weight=0, priority=27)
            if scored:
                log_scores(logging_outputs, pair, kind)
        # behind the scores: fairseq keeps the first of two derived values with one name, and the
        # criterion's --report-accuracy has that of the token accuracy
        log_pairs(criterion, logging_outputs, [*kinds, *self._logged_streams(logging_outputs)])
        log_likelihoods(logging_outputs, list(kinds))
        if scored:
            log_bleu_summary(logging_outputs, list(kinds))
