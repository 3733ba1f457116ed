"""Sets in several parts, of which --upsample-primary repeats the first."""

from __future__ import annotations

import copy
import functools
import inspect
from typing import Any

from ..patch_registry import PatchedModule, patch

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
        return stock(*bound.args, **bound.kwargs)

    module.load_langpair_dataset = load_langpair_dataset


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
