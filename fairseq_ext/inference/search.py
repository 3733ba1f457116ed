"""The search of a model in one direction: its options, and its translator of lines."""

import copy
from dataclasses import fields
from typing import Any, Dict, Iterator, Mapping, Sequence, Tuple

import numpy as np
import torch
from fairseq.data import FairseqDataset, encoders
from fairseq.dataclass.configs import GenerationConfig
from fairseq.models import BaseFairseqModel
from fairseq.tasks import FairseqTask
from fairseq.tasks.speech_to_text import SpeechToTextTask
from fairseq.tasks.translation_lev import TranslationLevenshteinTask
from omegaconf import DictConfig, OmegaConf, ValidationError, open_dict

from ..compat.checkpoints.configurations import chosen_name, options_of_task
from ..compat.command_line.companion_options import idle_options
from ..compat.command_line.option_checks import check_search
from ..compat.command_line.unread_options import UNREAD
from ..compat.generation.line_translator import Answer, BatchLimits, Coders, Line, LineTranslator
from ..compat.user_errors import hint_for, option_of
from ..dual.reranker import check_alpha

# options of tasks that say how to search, not what the model is, and their values by default
TASK_OPTIONS: Dict[str, Any] = {
    "dual_alpha": 1.0,
    "dual_length_norm": "tokens",
    "dual_path": None,
    "source_average": "early",
    "well_formed_targets": False,
}
# options of fairseq-generate that do nothing here, and what there is instead
ELSEWHERE = {
    "print_alignment": "the attention of the hypotheses",
    "print_step": "fairseq-generate",
    "retain_iter_history": "fairseq-generate",
    "score_reference": "score(..)",
    "constraints": "fairseq-interactive",
    "prefix_size": "fairseq-generate",
    "no_seed_provided": "torch.manual_seed",
    "eval_bleu": "fairseq-generate",
    "lm_path": "fairseq-generate",
    "lm_weight": "fairseq-generate",
    "retain_dropout": "fairseq-generate",
    "retain_dropout_modules": "fairseq-generate",
    "no_beamable_mm": "leave it out",
    "post_process": "subwords of load(..)",
    "sacrebleu": "fairseq-ext evaluate",
}
# of models that refine a translation in steps
OF_STEPS = ("iter_decode_", "decoding_format")


class QuietTranslator(LineTranslator):
    """A translator that draws no random numbers, beside others of the same models.

    fairseq's iterators are torch's ``DataLoader``, which draws one from the process's generator,
    and its datasets draw the order of sentences that are equally long.
    """

    def answers(self, lines: Sequence[Line]) -> Iterator[Answer]:
        """Yield the answers of the lines, in order; ValueError where min_len is too large."""
        set_beams(self.models, getattr(self.generator, "beam_size", 1))
        try:
            yield from super().answers(lines)
        except AssertionError as error:
            if "min_len cannot be larger" not in str(error):
                raise
            raise ValueError(
                f"min_len {self.generation.min_len}: more words than max_len_a or max_len_b "
                "allow for one of the sentences; allowed: less"
            ) from error

    def batches(self, dataset: FairseqDataset) -> Iterator[Dict[str, Any]]:
        """Yield batches of sentences of similar length."""
        keep_order(dataset)
        for batch in dataset.batch_by_size(
            dataset.ordered_indices(),
            max_tokens=self.limits.max_tokens,
            max_sentences=self.limits.max_sentences,
        ):
            yield dataset.collater([dataset[index] for index in batch])


def keep_order(dataset: FairseqDataset) -> None:
    """Let a dataset, and those that it wraps, draw nothing from NumPy's global state."""
    inner: Any = dataset
    while inner is not None:
        if hasattr(inner, "shuffle"):
            inner.shuffle = False
        inner = getattr(inner, "dataset", None)


def set_beams(models: Sequence[BaseFairseqModel], beam: int) -> None:
    """Tell models how many rows of a batch have one source; those of fairseq's BART keep it."""
    for model in models:
        if hasattr(model, "set_beam_size"):
            model.set_beam_size(beam)


def generation_options(values: Mapping[str, Any]) -> DictConfig:
    """Return fairseq's options of the search; ValueError for a name or value that is none."""
    allowed = [entry.name for entry in fields(GenerationConfig) if entry.name not in ELSEWHERE]
    for name in values:
        if name in ELSEWHERE:
            raise ValueError(f"{name}: no option of translate; allowed: {ELSEWHERE[name]}")
        if name not in allowed:
            hint = hint_for(name, [*allowed, *TASK_OPTIONS])
            raise ValueError(
                f"{name}: no option of the search{hint}; allowed: those of fairseq-generate, with "
                "underscores"
            )
    try:
        return OmegaConf.merge(OmegaConf.structured(GenerationConfig), dict(values))
    except ValidationError as error:
        raise ValueError(f"{error.full_key}: {str(error).splitlines()[0]}") from error


def task_with(task: FairseqTask, values: Mapping[str, Any]) -> FairseqTask:
    """Return the task with other options of ``TASK_OPTIONS``; ValueError for one it has not."""
    if not values:
        return task
    cfg: Any = copy.deepcopy(getattr(task, "cfg", None))
    for name, value in values.items():
        if cfg is None or name not in cfg:
            raise ValueError(f"{name}: {type(task).__name__} has no such option; leave it out")
        try:
            with open_dict(cfg):
                cfg[name] = value
        except ValueError as error:
            raise ValueError(f"{name} {value!r}: {str(error).splitlines()[0]}") from error
    if "dual_alpha" in values:
        check_alpha(cfg["dual_alpha"])
    other = copy.copy(task)
    other.cfg = cfg
    return other


def split_options(values: Mapping[str, Any]) -> Tuple[Dict[str, Any], Dict[str, Any]]:
    """Return the options of fairseq's search and those of the task."""
    of_task = {name: value for name, value in values.items() if name in TASK_OPTIONS}
    return {name: value for name, value in values.items() if name not in of_task}, of_task


def build_translator(
    task: FairseqTask,
    models: Sequence[BaseFairseqModel],
    options: Mapping[str, Any],
    coders: Coders,
    batch: int,
    device: torch.device,
) -> LineTranslator:
    """Return the translator of a direction by these options of the search.

    ValueError, naming the option, for one that is not allowed or that contradicts another.
    """
    of_search, of_task = split_options({k: plain_value(v) for k, v in options.items()})
    max_tokens = of_search.pop("max_tokens", None)
    if max_tokens is not None:
        max_tokens = check_count("max_tokens", max_tokens)
    for name in of_search.keys() & {"beam", "nbest"}:
        of_search[name] = check_count(name, of_search[name])
    generation = generation_options(of_search)
    # those that rank labels have as many hypotheses as labels, whatever the beam
    values = {**generation, "task": chosen_name(options_of_task(task), "task")}
    check_search(values)
    if not isinstance(task, TranslationLevenshteinTask):
        for name in of_search:
            if name.startswith(OF_STEPS):
                raise ValueError(f"{name}: the model refines nothing in steps; leave it out")
    if generation.sampling and generation.nbest != generation.beam:
        raise ValueError(
            f"sampling with nbest {generation.nbest} and beam {generation.beam}, the number of "
            "translations that are drawn: the best of several are other ones than the model's; "
            "allowed: the same number for both, such as beam=1, nbest=1"
        )
    searching = task_with(task, of_task)
    check_effects(values, searching.cfg["dual_alpha"] if "dual_alpha" in of_task else 1)
    if "eos_token" in of_search and not isinstance(task, SpeechToTextTask):
        raise ValueError("eos_token: models of recordings alone read it; leave it out")
    limits = BatchLimits(max_tokens, check_count("batch", batch))
    return QuietTranslator(searching, models, generation, coders, limits, device)


def check_effects(values: Mapping[str, Any], dual_alpha: float) -> None:
    """Raise ValueError for an option of the search that is set and does nothing.

    values: of all options of the search, and its task. dual_alpha: below 1, Eq. 7 of the dual
        system takes the place of the search's score, and with it of what changes that score.
    """
    for text in idle_options(values):
        raise ValueError(f"{text}; allowed: leave it out")
    for name, instead in UNREAD.items():
        if values.get(name):
            raise ValueError(f"{option_of(name)} does nothing: {instead}; allowed: leave it out")
    for name, neutral in dict(lenpen=1, unnormalized=False).items():
        if dual_alpha != 1 and values[name] != neutral:
            raise ValueError(
                f"{option_of(name)} does nothing with --dual-alpha {dual_alpha}: "
                "--dual-length-norm says how scores depend on lengths; allowed: leave it out"
            )


def plain_value(value: Any) -> Any:
    """Return a number as OmegaConf takes it: not of NumPy or torch, and 4 for 4.0."""
    if isinstance(value, (np.generic, np.ndarray, torch.Tensor)) and not value.shape:
        value = value.item()
    return int(value) if isinstance(value, float) and value.is_integer() else value


def check_count(name: str, value: Any) -> int:
    """Return the value of an option that counts; ValueError unless it is a whole number from 1."""
    number = plain_value(value)
    try:
        # True would be 1
        count = 0 if isinstance(number, bool) else int(number)
        if count >= 1 and count == float(number):
            return count
    except (TypeError, ValueError, OverflowError):
        pass  # no number, or infinity
    raise ValueError(f"{name} {value!r}: allowed: a whole number, at least 1")


def check_flag(name: str, value: Any) -> bool:
    """Return a switch; ValueError if it is neither on nor off: the text "no" would be on."""
    if plain_value(value) not in (True, False):
        raise ValueError(f"{name} {value!r}: allowed: True, False")
    return bool(value)


def tokenizer_options(options: Mapping[str, Any], source: str, target: str) -> DictConfig:
    """Return options of a tokenizer of words for a direction; ValueError for one there is not."""
    name = options["_name"]
    if name not in encoders.TOKENIZER_REGISTRY:
        allowed = ", ".join(encoders.TOKENIZER_REGISTRY)
        raise ValueError(f"tokenizer {name!r}: allowed: {allowed}")
    languages = {"source_lang": source, "target_lang": target} if name == "moses" else {}
    return OmegaConf.create({**options, **languages})
