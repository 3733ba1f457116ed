"""Lists of kernels of lightconv that are of another number of layers."""

from __future__ import annotations

import functools
from typing import Any

from ..patch_registry import PatchedModule, patch
from ..user_errors import OptionError, option_of


@patch(
    "fairseq.models.lightconv",
    "fairseq.models.lightconv_lm",
    because="fairseq 0.12.2: kernels of lightconv for another number of layers end in an "
    "AssertionError without the value",
)
def kernels_are_of_all_layers(module: PatchedModule) -> None:
    """Name the list of kernels that is of another length than the layers."""
    from fairseq.models import ARCH_CONFIG_REGISTRY

    name = "base_lm_architecture" if module.__name__.endswith("_lm") else "base_architecture"
    stock = getattr(module, name)

    @functools.wraps(stock)
    def architecture(args: Any) -> None:
        try:
            stock(args)
        except AssertionError as error:
            side = str(error).partition("_")[0]
            kernels, layers = (
                getattr(args, f"{side}_{of}", None) for of in ("kernel_size_list", "layers")
            )
            if kernels is None:
                raise
            raise OptionError(
                f"--{side}-kernel-size-list {kernels}: a size for each of {len(kernels)} layers "
                f"with {option_of(f'{side}_layers', layers)}; allowed: one for all, or {layers}"
            ) from error

    setattr(module, name, architecture)
    for arch, function in ARCH_CONFIG_REGISTRY.items():
        if function is stock:
            ARCH_CONFIG_REGISTRY[arch] = architecture
