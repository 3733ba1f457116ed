"""What is validated: how many batches, the training set, and which sets --valid-subset names."""

from __future__ import annotations

import copy
import functools
from typing import TYPE_CHECKING, Any

from ..patch_registry import PatchedModule, patch

if TYPE_CHECKING:
    from fairseq.data import FairseqDataset
    from fairseq.data.iterators import EpochBatchIterator
    from fairseq.dataclass.configs import FairseqConfig
    from fairseq.trainer import Trainer


@patch(
    "fairseq.trainer",
    because="fairseq 0.12.2: a task keeps one iterator for a dataset; a --valid-subset that names "
    "the training set takes the training's, and each validation ends the epoch",
)
def training_sets_have_a_second_iterator(module: PatchedModule) -> None:
    """Validate on a copy of the training set, for which a task makes another iterator."""
    trainer = module.Trainer
    stock = trainer.get_valid_iterator

    def get_valid_iterator(
        self: Trainer, subset: str, *args: Any, **kwargs: Any
    ) -> EpochBatchIterator:
        """Return the iterator of a subset, for the training set one of its own."""
        if subset != self.cfg.dataset.train_subset:
            return stock(self, subset, *args, **kwargs)
        name = f"{subset}, validated"  # for this call: fairseq finds a set by its name
        self.task.datasets[name] = _copy_of(self, self.task.dataset(subset))
        try:
            return stock(self, name, *args, **kwargs)
        finally:
            del self.task.datasets[name]

    trainer.get_valid_iterator = get_valid_iterator


def _copy_of(trainer: Any, dataset: FairseqDataset) -> FairseqDataset:
    """Return the copy of a dataset that this trainer validates on; its data are not copied."""
    trained, validated = getattr(trainer, "_validated_copy", (None, None))
    # sharded training sets are loaded anew for an epoch
    if trained is not dataset:
        validated = copy.copy(dataset)  # another key in the task's table of iterators
        trainer._validated_copy = dataset, validated
    return validated


@patch(
    "fairseq_cli.train", because="fairseq 0.12.2: --max-valid-steps N validates on N + 1 batches"
)
def validation_has_so_many_steps(module: PatchedModule) -> None:
    """Validate on N batches."""
    stock = module.validate

    @functools.wraps(stock)
    def validate(cfg: FairseqConfig, *args: Any, **kwargs: Any) -> Any:
        if cfg.dataset.max_valid_steps is not None:
            cfg = copy.deepcopy(cfg)
            cfg.dataset.max_valid_steps -= 1  # fairseq ends behind the batch of this number
        return stock(cfg, *args, **kwargs)

    module.validate = validate


# tasks with a set for each language, VALID_LANGUAGE, beside VALID
TASKS_OF_LANGUAGES = (
    "MultiLingualMaskedLMTask",
    "MultilingualDenoisingTask",
    "MultilingualLanguageModelingTask",
)


@patch(
    "fairseq_cli.train",
    because="fairseq 0.12.2: multilingual_masked_lm, multilingual_denoising and "
    "multilingual_language_modeling load a validation set of each language, which is not read",
)
def languages_are_validated(module: PatchedModule) -> None:
    """Validate on the sets of the languages, behind those of --valid-subset."""
    stock = module.validate

    @functools.wraps(stock)
    def validate(
        cfg: FairseqConfig, trainer: Trainer, task: Any, epoch_itr: Any, subsets: list[str]
    ) -> Any:
        names = [name for subset in subsets for name in _sets_of_languages(task, subset)]
        losses = stock(cfg, trainer, task, epoch_itr, [*subsets, *names])
        return losses[: len(subsets)]

    module.validate = validate


def _sets_of_languages(task: Any, subset: str) -> list[str]:
    """Return the names of the sets of one language each that are parts of a validation set."""
    if not any(kind.__name__ in TASKS_OF_LANGUAGES for kind in type(task).__mro__):
        return []
    return [name for name in task.datasets if name.startswith(f"{subset}_")]


@patch(
    "fairseq.data.data_utils",
    because="fairseq 0.12.2: --valid-subset valid,valid1 is refused for translation: valid1 is "
    "looked for among names such as valid1.de-en.de, and taken for forgotten",
)
def further_sets_have_their_names(module: PatchedModule) -> None:
    """Compare names of sets with names of sets."""
    stock = module._find_extra_valid_paths

    @functools.wraps(stock)
    def _find_extra_valid_paths(dataset_path: str) -> set[str]:
        return {path.partition(".")[0] for path in stock(dataset_path)}

    module._find_extra_valid_paths = _find_extra_valid_paths
