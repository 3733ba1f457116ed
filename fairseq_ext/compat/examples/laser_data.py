"""The example laser: the formats of binarised data that it reads."""

from __future__ import annotations

from typing import Any

from ..imported_examples import modules_of_examples
from ..patch_registry import PatchedModule, patch


@patch(
    *modules_of_examples("laser.laser_src.laser_task"),
    because="fairseq 0.12.2: --task laser reads data of --dataset-impl lazy only; with those that "
    "fairseq-preprocess writes by default it ends in an AssertionError",
)
def laser_reads_every_format(module: PatchedModule) -> None:
    """Read binarised data of any format."""
    from fairseq.data import indexed_dataset

    lazy = module.IndexedDataset

    def open_dataset(path: str, fix_lua_indexing: bool = False) -> Any:
        kind = indexed_dataset.infer_dataset_impl(path)
        if kind in (None, "cached", "lazy"):  # one format
            return lazy(path, fix_lua_indexing=fix_lua_indexing)
        return indexed_dataset.make_dataset(path, kind, fix_lua_indexing=fix_lua_indexing)

    module.IndexedDataset = open_dataset
