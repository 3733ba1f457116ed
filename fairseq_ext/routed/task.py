"""Routed multi-task learning's task: a main lang pair and auxiliary ones, from text to anything."""

import logging
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Dict, List, Optional

import torch
from fairseq import metrics, utils
from fairseq.data import Dictionary, LanguagePairDataset, PrependTokenDataset
from fairseq.dataclass import ChoiceEnum
from fairseq.tasks import FairseqTask, register_task

from ..streams.config import StreamsConfig
from ..streams.metrics import log_bleu_summary, log_pair
from ..streams.schedule import SCHEDULES, parse_lang_pairs, sides
from ..streams.task import StreamsTask, load_dictionary
from .validation import TaskScores, log_scores, parse_target_kinds

logger = logging.getLogger(__name__)
TOKEN = "__task_{}__"


@dataclass
class RoutedMtlConfig(StreamsConfig):
    schedule: ChoiceEnum(SCHEDULES) = field(
        default="main+aux",
        metadata={
            "help": "pairs of each update: main+aux (the paper: --main-pair and a random other "
            "one), joint, cycle, temperature; with one pair there is no choice"
        },
    )
    task_gamma: Optional[str] = field(
        default=None,
        metadata={
            "help": "gamma_m, weight of a task in the objective, e.g. en-ner=0.5; others have 1 "
            "(paper: 1 for all)"
        },
    )
    task_patience: int = field(
        default=0,
        metadata={
            "help": "a task whose validation loss has not improved so many times in a row has its "
            "weight halved (paper: its learning rate, each time); 0 = off"
        },
    )
    target_kinds: str = field(
        default="ner=tags,parse=trees,tree=trees,amr=graphs",
        metadata={
            "help": "what target languages are, for the scores of --eval-bleu: LANG=KIND with "
            "text (the others: BLEU and TER), tags, trees or graphs (accuracy, exact match, F1)"
        },
    )


def parse_gamma(text: Optional[str], pairs: List[str]) -> Dict[str, float]:
    """ "en-ner=0.5" -> {"en-vi": 1.0, "en-ner": 0.5}; ValueError for anything else."""
    gamma = dict.fromkeys(pairs, 1.0)
    for entry in (entry.strip() for entry in (text or "").split(",") if entry.strip()):
        pair, _, number = entry.partition("=")
        if pair not in gamma:
            raise ValueError(f"--task-gamma {entry!r}: {pair!r} is none of {', '.join(pairs)}")
        try:
            gamma[pair] = float(number)
        except ValueError:
            gamma[pair] = -1.0
        if not 0 < gamma[pair] < float("inf"):
            raise ValueError(f"--task-gamma {entry!r}: {number!r} must be a number greater than 0")
    return gamma


def check_task_patience(cfg) -> None:
    """Raise ValueError, naming the option, when --task-patience cannot work."""
    if cfg.task_patience < 0:
        raise ValueError(f"--task-patience {cfg.task_patience}: must be at least 0; 0 = off")
    for option in ("pair_patience", "disable_validation"):
        if cfg.task_patience and getattr(cfg, option):
            flag = "--" + option.replace("_", "-")
            raise ValueError(
                f"--task-patience {cfg.task_patience}: does not go together with {flag}"
            )


def add_task_tokens(dictionary: Dictionary, pairs: List[str]) -> None:
    """Append the tokens of tasks to a source dictionary, in the order of their names.

    A second call changes nothing. ValueError when the dictionary has the tokens of other tasks:
    checkpoints of an ensemble must have been trained on the same pairs.
    """
    prefix = TOKEN.split("{")[0]
    wanted = [TOKEN.format(pair) for pair in sorted(pairs)]
    present = [symbol for symbol in dictionary.symbols if symbol.startswith(prefix)]
    if present and present != wanted:
        raise ValueError(
            f"--lang-pairs: the source dictionary has the task tokens {', '.join(present)}, "
            f"the model needs {', '.join(wanted)}"
        )
    for symbol in wanted if not present else ():
        dictionary.add_symbol(symbol)


class _Weighted(torch.nn.Module):
    """A criterion whose loss is the task's part of the objective.

    gamma_m / |D_m| times the sum over D_m is gamma_m times a mean, which a minibatch estimates: the
    criterion's sum is divided by the minibatch's own size. The sizes returned add up to one for an
    update's minibatches, so that nothing divides by them again.
    """

    def __init__(self, criterion, weights: Dict[str, float], pairs: int):
        super().__init__()
        self.criterion, self.weights, self.pairs = criterion, weights, pairs

    def forward(self, model, sample):
        loss, size, log = self.criterion(model, sample)
        weight = self.weights[sample["net_input"]["pair"]]
        return loss * (weight / max(size, 1)), 1 / self.pairs, log


@register_task("routed_mtl", dataclass=RoutedMtlConfig)
class RoutedMtlTask(StreamsTask):
    """Trains --main-pair with auxiliary pairs; the task is told by the source's first token.

    Objective (Sec. 2.3): sum over tasks m of gamma_m / |D_m| times the log-likelihood of D_m. Every
    update takes a minibatch of the main task and one of an auxiliary task.

    Deviation: the paper halves the learning rate of a task when its dev score drops. One optimiser
    has one learning rate, so the task's weight in the objective is halved instead.
    """

    cfg: RoutedMtlConfig

    @classmethod
    def setup_task(cls, cfg: RoutedMtlConfig, **kwargs):
        pairs = parse_lang_pairs(cfg.lang_pairs) if cfg.lang_pairs else []
        if pairs and cfg.main_pair is not None and cfg.main_pair not in pairs:
            raise ValueError(f"--main-pair {cfg.main_pair!r}: must be one of {', '.join(pairs)}")
        if len(pairs) < 2 and str(cfg.schedule) == "main+aux":
            cfg.schedule = "cycle"  # a single task, or a direction at inference
        if cfg.num_batch_buckets:
            raise ValueError(f"--num-batch-buckets {cfg.num_batch_buckets}: not with routed_mtl")
        check_task_patience(cfg)
        # the default, and the options of others for a single task, name more than there is
        own = len(pairs) > 1 and cfg.target_kinds != RoutedMtlConfig.target_kinds
        parse_target_kinds(cfg.target_kinds, sides(pairs)[1] if own else ())
        task = super().setup_task(cfg, **kwargs)
        parse_gamma(cfg.task_gamma, task.pairs)
        return task

    # ---------------------------------------------------------------- task tokens

    def build_model(self, cfg, from_checkpoint=False):
        saved = getattr(cfg, "lang_pairs", None) if from_checkpoint else None
        self._add_tokens(parse_lang_pairs(saved) if saved else self.pairs)
        return super().build_model(cfg, from_checkpoint)

    def _add_tokens(self, pairs: List[str]) -> None:
        for lang in sides(pairs)[0]:
            if lang not in self.dictionaries:
                paths = utils.split_paths(self.cfg.data)
                self.dictionaries[lang] = load_dictionary(paths, lang)
            own = [pair for pair in pairs if pair.split("-")[0] == lang]
            add_task_tokens(self.dictionaries[lang], own)

    def task_token(self, pair: str) -> int:
        """The index, in the source dictionary, of the token that begins every source of a task."""
        self._add_tokens(self.pairs)
        dictionary = self.dictionaries[pair.split("-")[0]]
        return dictionary.index(TOKEN.format(pair))

    def _load_pair(self, path: str, split: str, pair: str, combine: bool):
        with self._room_for_the_token():
            plain = super()._load_pair(path, split, pair, combine)
        source = PrependTokenDataset(plain.src, self.task_token(pair))
        return LanguagePairDataset(
            source,
            source.sizes,
            plain.src_dict,
            plain.tgt,
            plain.tgt_sizes,
            plain.tgt_dict,
            left_pad_source=plain.left_pad_source,
            left_pad_target=plain.left_pad_target,
            shuffle=plain.shuffle,
            align_dataset=plain.align_dataset,
            eos=plain.eos,
            pad_to_multiple=plain.pad_to_multiple,
        )

    @contextmanager
    def _room_for_the_token(self):
        """--truncate-source leaves one place free; --max-source-positions counts the token."""
        limit = self.cfg.max_source_positions
        self.cfg.max_source_positions = limit - 1
        try:
            yield
        finally:
            self.cfg.max_source_positions = limit

    def build_dataset_for_inference(self, src_tokens, src_lengths, **options):
        """What fairseq-interactive and the hub interface translate: lines without the token."""
        if self.pair is None:
            raise ValueError(f"-s and -t: choose one of {', '.join(self.pairs)}")
        token = self.task_token(self.pair)
        marked = [torch.cat([one.new_tensor([token]), one]) for one in src_tokens]
        lengths = [len(one) for one in marked]
        return super().build_dataset_for_inference(marked, lengths, **options)

    # ---------------------------------------------------------------- objective

    def task_weights(self) -> Dict[str, float]:
        """{pair: gamma_m, halved as often as --task-patience has asked for it}."""
        halved = self.run_state.more.get("weight", {})
        gamma = parse_gamma(self.cfg.task_gamma, self.pairs)
        return {pair: gamma[pair] * halved.get(pair, 1.0) for pair in self.pairs}

    def train_step(self, sample, model, criterion, optimizer, update_num, ignore_grad=False):
        """As in ``StreamsTask``, on the weighted objective."""
        weighted = _Weighted(criterion, self.task_weights(), max(len(sample), 1))
        return super().train_step(sample, model, weighted, optimizer, update_num, ignore_grad)

    @property
    def patience(self) -> int:
        return self.cfg.task_patience or self.cfg.pair_patience

    def judged_by_bleu(self, pair: str) -> bool:
        """Only texts have BLEU; --task-patience always goes by the loss."""
        bleu = super().judged_by_bleu(pair) and not self.cfg.task_patience
        return bleu and self.kinds()[pair] == "text"

    def pair_stalled(self, pair: str, epoch: int) -> None:
        """With --task-patience the task's weight is halved, otherwise the pair leaves."""
        if not self.cfg.task_patience:
            super().pair_stalled(pair, epoch)
            return
        weights = self.run_state.more.setdefault("weight", {})
        weights[pair] = weights.get(pair, 1.0) / 2
        logger.info(
            f"{pair}: no better loss than {self.run_state.best.get(pair)} in "
            f"{self.cfg.task_patience} validations in a row (--task-patience): its weight is now "
            f"{self.task_weights()[pair]:g}"
        )

    # ---------------------------------------------------------------- scores

    def kinds(self) -> Dict[str, str]:
        """{pair: what its target is}."""
        kinds = parse_target_kinds(self.cfg.target_kinds)
        return {pair: kinds.get(pair.split("-")[1], "text") for pair in self._logged_pairs()}

    def scorer(self) -> TaskScores:
        return TaskScores(self.cfg, self.dictionaries, self.kinds())

    def reduce_metrics(self, logging_outputs, criterion):
        FairseqTask.reduce_metrics(self, logging_outputs, criterion)
        kinds, weights = self.kinds(), self.task_weights()
        scored = any("_ter_edits" in log for log in logging_outputs)
        for pair, kind in kinds.items():
            log_pair(criterion, logging_outputs, pair)
            if pair in weights:
                metrics.log_scalar(f"{pair}_weight", weights[pair], weight=0, priority=27)
            if scored:
                log_scores(logging_outputs, pair, kind)
        texts = [pair for pair, kind in kinds.items() if kind == "text"]
        if scored and texts:
            log_bleu_summary(texts)
