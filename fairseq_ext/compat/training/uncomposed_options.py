"""Options of tasks and criteria that a program makes itself: `TranslationConfig(data=...)`.

Where fairseq composes them, an option such as `${optimization.sentence_avg}` has the value of the
option that it names. Alone it is a text, which is true where a truth value is read.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from typing import Any

from ..patch_registry import PatchedModule, patch
from ..surrounded_calls import call_before

REFERENCE = re.compile(r"\$\{(\w+)\.(\w+)\}")
# {module: its criterion with a build_criterion}
CRITERIA = {
    "fairseq.criterions.fairseq_criterion": "FairseqCriterion",
    "fairseq.criterions.adaptive_loss": "AdaptiveLoss",
}


@patch(
    "fairseq.tasks.fairseq_task",
    because="fairseq 0.12.2: a task that is set up with TranslationConfig(data='a:b') reads the "
    "folder a in every epoch, and its dataset_impl is the text ${dataset.dataset_impl}",
)
def options_of_tasks_have_values(module: PatchedModule) -> None:
    """Give options that are references the defaults of what they refer to."""

    def fill(self: Any, cfg: Any, **kwargs: Any) -> None:
        fill_references(cfg)

    call_before(module.FairseqTask, "__init__", fill)


@patch(
    *CRITERIA,
    because="fairseq 0.12.2: build_criterion('cross_entropy', task) divides by sentences, as with "
    "--sentence-avg: its option is the text ${optimization.sentence_avg}",
)
def options_of_criteria_have_values(module: PatchedModule) -> None:
    """Give options that are references the defaults of what they refer to."""
    criterion = vars(module)[CRITERIA[module.__name__]]
    stock = criterion.build_criterion.__func__

    @functools.wraps(stock)
    def build_criterion(cls: Any, cfg: Any, task: Any) -> Any:
        fill_references(cfg)
        return stock(cls, cfg, task)

    criterion.build_criterion = classmethod(build_criterion)


def fill_references(cfg: Any) -> None:
    """Replace references by the defaults of fairseq-train, in a dataclass alone.

    Those to a task, model or criterion remain: without its name it has no defaults.
    """
    if not dataclasses.is_dataclass(cfg) or isinstance(cfg, type):
        return
    for option in dataclasses.fields(cfg):
        value = getattr(cfg, option.name, None)
        if isinstance(value, str) and REFERENCE.fullmatch(value):
            setattr(cfg, option.name, default_of(value))


def default_of(reference: str) -> Any:
    """Return the default of what a reference names; the reference if that has none."""
    from fairseq.dataclass.configs import FairseqConfig

    match = REFERENCE.fullmatch(reference)
    assert match is not None
    section = getattr(FairseqConfig(), match.group(1), None)
    value = getattr(section, match.group(2), reference)
    is_further = isinstance(value, str) and value != reference and REFERENCE.fullmatch(value)
    return default_of(value) if is_further else value
