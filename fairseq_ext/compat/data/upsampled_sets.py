"""Sets in several parts, of which --upsample-primary repeats the first."""

from __future__ import annotations

import copy
import functools
import inspect
import logging
from typing import Any

from ..patch_registry import PatchedModule, patch

logger = logging.getLogger(__name__)

# of the functions that read the parts of a set
OF_PARTS = ("split", "combine", "upsample_primary")

# {module that reads --upsample-primary: class, method that reads a set, attribute with the options}
UPSAMPLING = {
    "fairseq.tasks.translation": ("TranslationTask", "load_dataset", "cfg"),
    "fairseq.tasks.translation_lev": ("TranslationLevenshteinTask", "load_dataset", "cfg"),
    "fairseq.tasks.translation_from_pretrained_bart": (
        "TranslationFromPretrainedBARTTask",
        "load_dataset",
        "args",
    ),
    "fairseq.tasks.multilingual_translation": (
        "MultilingualTranslationTask",
        "load_dataset",
        "args",
    ),
    "fairseq.tasks.online_backtranslation": (
        "OnlineBackTranslationTask",
        "load_translation_dataset",
        "args",
    ),
    "fairseq.data.multilingual.multilingual_data_manager": (
        "MultilingualDatasetManager",
        "load_a_dataset",
        "args",
    ),
}


@patch(
    "fairseq.tasks.translation",
    because='fairseq 0.12.2: train1.* beside train.* ends in "negative dimensions are not '
    'allowed", unless --upsample-primary is given, whose default is -1',
)
def parts_of_a_training_set_are_read(module: PatchedModule) -> None:
    """Read the first part of a set once where --upsample-primary does not say how often."""
    stock = module.load_langpair_dataset

    @functools.wraps(stock)
    def load_langpair_dataset(*args: Any, **kwargs: Any) -> Any:
        bound = inspect.signature(stock).bind(*args, **kwargs)
        if bound.arguments["upsample_primary"] == -1:
            bound.arguments["upsample_primary"] = 1
        dataset = stock(*bound.args, **bound.kwargs)
        warn_of_one_part(dataset.src, *(bound.arguments[name] for name in OF_PARTS))
        return dataset

    module.load_langpair_dataset = load_langpair_dataset


@patch(
    "fairseq.data.multilingual.multilingual_data_manager",
    because="fairseq 0.12.2: --upsample-primary does nothing without train1.* beside train.*, and "
    "nothing says so",
)
def repetition_needs_parts(module: PatchedModule) -> None:
    """Warn of --upsample-primary with a training set of one part."""
    stock = module.MultilingualDatasetManager.load_lang_dataset

    @functools.wraps(stock)
    def load_lang_dataset(self: Any, *args: Any, **kwargs: Any) -> Any:
        bound = inspect.signature(stock).bind(self, *args, **kwargs)
        datasets = stock(self, *args, **kwargs)
        warn_of_one_part(datasets[0], *(bound.arguments[name] for name in OF_PARTS))
        return datasets

    module.MultilingualDatasetManager.load_lang_dataset = load_lang_dataset


def warn_of_one_part(source: Any, split: str, combine: bool, upsample_primary: int) -> None:
    """Warn where the first part of a set is to be repeated, and there is no other.

    Args:
        source: what was read of the source.
        split, combine, upsample_primary: as fairseq's functions take them.
    """
    from fairseq.data import ConcatDataset

    while not isinstance(source, ConcatDataset) and hasattr(source, "dataset"):
        source = source.dataset
    if upsample_primary > 1 and combine and not isinstance(source, ConcatDataset):
        logger.warning(
            f"--upsample-primary {upsample_primary} does nothing: the data have no {split}1, "
            f"beside which {split} would be repeated"
        )


@patch(
    *UPSAMPLING,
    because="fairseq 0.12.2: with --combine-valid-subsets, --upsample-primary counts the sentences "
    "of the first validation set several times in loss and BLEU",
)
def only_training_is_upsampled(module: PatchedModule) -> None:
    """Read each sentence of other sets than --train-subset once."""
    class_name, method, options = UPSAMPLING[module.__name__]
    reader = getattr(module, class_name)
    stock = getattr(reader, method)

    @functools.wraps(stock)
    def load(self: Any, split: str, *args: Any, **kwargs: Any) -> Any:
        cfg = getattr(self, options)
        if split == cfg.train_subset:
            return stock(self, split, *args, **kwargs)
        once = copy.copy(cfg)
        once.upsample_primary = 1
        setattr(self, options, once)
        try:
            return stock(self, split, *args, **kwargs)
        finally:
            setattr(self, options, cfg)

    setattr(reader, method, load)
