"""Names that numpy dropped, and its new rule for mixed integers."""

from __future__ import annotations

import types
from typing import Any

from ..module_overlay import overlay_names
from ..patch_registry import PatchedModule, patch, since


@patch(
    "fairseq.data.data_utils",
    "fairseq.data.language_pair_dataset",
    "fairseq.data.token_block_dataset",
    "fairseq.modules.dynamic_crf_layer",
    because="numpy 1.24 dropped np.int and np.float, 2.0 dropped np.compat, 2.4 dropped the "
    "argument percentile(interpolation=): bucketing, blocks of tokens and masks fail",
    conditions=[since("numpy", 1, 24)],
)
def numpy_old_names(module: PatchedModule) -> None:
    """Show the four modules that use them a numpy that still has these names."""
    import numpy

    def percentile(*args: Any, interpolation: str | None = None, **kwargs: Any) -> Any:
        if interpolation is not None:
            kwargs["method"] = interpolation  # its name since numpy 1.22
        return numpy.percentile(*args, **kwargs)

    old: dict[str, Any] = {"int": int, "float": float, "compat": types.SimpleNamespace(long=int)}
    missing = {name: value for name, value in old.items() if name not in vars(numpy)}
    overlay_names(module, "np", percentile=percentile, **missing)


@patch(
    "fairseq.data.indexed_dataset",
    because="numpy 2 keeps int32 in int32 * int: offsets in binarised data of more than 2 GiB "
    "overflow",
    conditions=[since("numpy", 2, 0)],
    for_older=True,
)
def numpy_int32_offsets(module: PatchedModule) -> None:
    """Compute the offsets of a binarised file with Python integers."""
    builder = module.MMapIndexedDatasetBuilder
    finalize = builder.finalize

    def finalize_with_int(self: Any, index_file: str) -> None:
        self._sizes = [int(size) for size in self._sizes]  # their running sum passes 2^31
        finalize(self, index_file)

    builder.finalize = finalize_with_int
