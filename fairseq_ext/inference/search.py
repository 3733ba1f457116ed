"""The search of a model in one direction: its options, and its translator of lines."""

import copy
import difflib
from dataclasses import fields
from typing import Any, Dict, Iterator, Mapping, Sequence, Tuple

import torch
from fairseq.data import FairseqDataset, encoders
from fairseq.dataclass.configs import GenerationConfig
from fairseq.models import BaseFairseqModel
from fairseq.tasks import FairseqTask
from omegaconf import DictConfig, OmegaConf, open_dict

from ..compat.line_translator import Answer, BatchLimits, Coders, Line, LineTranslator
from ..dual.reranker import check_alpha

# options of tasks that say how to search, not what the model is
TASK_OPTIONS = (
    "dual_alpha",
    "dual_length_norm",
    "dual_path",
    "source_average",
    "well_formed_targets",
)
# what this interface says in another way: by its arguments and results
TAKEN: Tuple[str, ...] = (
    "print_alignment",
    "print_step",
    "score_reference",
    "constraints",
    "prefix_size",
)
TAKEN += ("no_seed_provided", "eval_bleu")


class QuietTranslator(LineTranslator):
    """A translator that draws no random numbers, beside others of the same models.

    fairseq's iterators are torch's ``DataLoader``, which draws one from the process's generator.
    """

    def answers(self, lines: Sequence[Line]) -> Iterator[Answer]:
        """Yield the answers of the lines, in order."""
        set_beams(self.models, getattr(self.generator, "beam_size", 1))
        yield from super().answers(lines)

    def batches(self, dataset: FairseqDataset) -> Iterator[Dict[str, Any]]:
        """Yield batches of sentences of similar length."""
        for batch in dataset.batch_by_size(
            dataset.ordered_indices(),
            max_tokens=self.limits.max_tokens,
            max_sentences=self.limits.max_sentences,
        ):
            yield dataset.collater([dataset[index] for index in batch])


def set_beams(models: Sequence[BaseFairseqModel], beam: int) -> None:
    """Tell models how many rows of a batch have one source; those of fairseq's BART keep it."""
    for model in models:
        if hasattr(model, "set_beam_size"):
            model.set_beam_size(beam)


def generation_options(values: Mapping[str, Any]) -> DictConfig:
    """Return fairseq's options of the search; ValueError for a name or value that is none."""
    allowed = [entry.name for entry in fields(GenerationConfig) if entry.name not in TAKEN]
    for name in values:
        if name not in allowed:
            close = difflib.get_close_matches(name, [*allowed, *TASK_OPTIONS], n=1)
            hint = f" (did you mean {close[0]}?)" if close else ""
            raise ValueError(
                f"{name}: no option of the search{hint}; allowed: those of fairseq-generate, with "
                "underscores"
            )
    try:
        return OmegaConf.merge(OmegaConf.structured(GenerationConfig), dict(values))
    except ValueError as error:
        raise ValueError(f"option of the search: {str(error).splitlines()[0]}") from error


def task_with(task: FairseqTask, values: Mapping[str, Any]) -> FairseqTask:
    """Return the task with other options of ``TASK_OPTIONS``; ValueError for one it has not."""
    if not values:
        return task
    cfg = copy.deepcopy(getattr(task, "cfg", None))
    for name, value in values.items():
        if cfg is None or name not in cfg:
            raise ValueError(f"{name}: {type(task).__name__} has no such option; leave it out")
        with open_dict(cfg):
            cfg[name] = value
    if "dual_alpha" in values:
        check_alpha(values["dual_alpha"])
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
    """Return the translator of a direction by these options of the search."""
    if batch < 1:
        raise ValueError(f"batch {batch}: allowed: at least 1")
    of_search, of_task = split_options(options)
    generation = generation_options(of_search)
    for name in ("beam", "nbest"):
        if generation[name] < 1:
            raise ValueError(f"{name} {generation[name]}: allowed: at least 1")
    limits = BatchLimits(None, batch)
    return QuietTranslator(task_with(task, of_task), models, generation, coders, limits, device)


def build_tokenizer(name: str, source: str, target: str) -> Any:
    """Return fairseq's tokenizer of words; ValueError for one that there is not."""
    if name not in encoders.TOKENIZER_REGISTRY:
        allowed = ", ".join(encoders.TOKENIZER_REGISTRY)
        raise ValueError(f"tokenizer {name!r}: allowed: {allowed}")
    values = {"_name": name}
    if name == "moses":
        values.update(source_lang=source, target_lang=target)
    return encoders.build_tokenizer(OmegaConf.create(values))
