"""translation_multi_simple_epoch: the two directions of one text."""

from __future__ import annotations

import copy
import functools
from typing import TYPE_CHECKING, Any

from ..patch_registry import PatchedModule, patch

if TYPE_CHECKING:
    from fairseq.data import LanguagePairDataset
    from fairseq.data.multilingual.multilingual_data_manager import MultilingualDatasetManager


@patch(
    "fairseq.data.multilingual.multilingual_data_manager",
    because="fairseq 0.12.2: with --enable-reservsed-directions-shared-datasets, the second "
    "direction of a text has the tags of the first one, as its source the other's target: unless "
    "--encoder-langtok src and --decoder-langtok are both given, it is trained with wrong tags",
)
def shared_directions_have_their_tags(module: PatchedModule) -> None:
    """Share what was read from the files, before tags are added."""
    manager_class = module.MultilingualDatasetManager
    stock = manager_class.load_langpair_dataset

    @functools.wraps(stock)
    def load_langpair_dataset(
        self: MultilingualDatasetManager,
        *args: Any,
        langpairs_sharing_datasets: dict[Any, Any] | None = None,
        **options: Any,
    ) -> LanguagePairDataset:
        files = langpairs_sharing_datasets
        if files is None:
            return stock(self, *args, **options)

        def load_data(path: str, dictionary: Any, implementation: Any) -> Any:
            if path not in files:
                files[path] = self.load_data(path, dictionary, implementation)
            return files[path]

        manager = copy.copy(self)
        manager.load_data = load_data
        return stock(manager, *args, **options)

    manager_class.load_langpair_dataset = load_langpair_dataset
