"""Filters for warnings that fairseq 0.12.2 itself causes and that its users cannot act on.

Each filter names a text and, where the text is not fairseq's alone, by the module it points at.
Every other warning stays.
"""

from __future__ import annotations

import warnings
from typing import Any, Iterable

from ..patch_registry import BEFORE, PatchedModule, patch, since

# (start of the text, module that the warning points at)
HYDRA = (
    (r"hydra\.experimental\.(initialize|compose)\(\) is no longer", r"hydra\.experimental\."),
    (r"\s*The version_base parameter is not specified", r"hydra\.experimental\.initialize"),
    (r"\s*The version_base parameter is not specified", r"fairseq_cli\.hydra_train|__main__"),
    (r"\s*The strict flag in the compose API is deprecated", r"hydra\.compose"),
    # about fairseq's file config.yaml; the module it points at depends on the command
    (r"In 'config': Usage of deprecated keyword in package header", ""),
    (r"\s*'config' is validated against ConfigStore schema with the same name", ""),
    (r"Future Hydra versions will no longer change working directory", r"hydra\._internal\.hydra"),
)
TORCH = (
    (r"`broadcast_buffers` is deprecated", r"fairseq_ext\.compat\.training\.distributed"),
    (r"`torch\.cuda\.amp\.\w+\(args\.\.\.\)` is deprecated", r"fairseq\."),
    (r"'pin_memory' argument is set as true but no accelerator", r"torch\.utils\.data\."),
    (r"Support for mismatched key_padding_mask and attn_mask", r"torch\.nn\.functional"),
)
# the warning points at torch, whoever calls torch.jit.script
TORCHSCRIPT = r"`torch\.jit\.script` is (deprecated|not supported)"


def _ignore(filters: Iterable[tuple[str, str]]) -> None:
    """Add filters for warnings of these texts that point at these modules."""
    for text, module in filters:
        for category in (UserWarning, FutureWarning):
            warnings.filterwarnings("ignore", message=text, category=category, module=module)


@patch(
    "fairseq.dataclass.utils",
    "fairseq_cli.hydra_train",
    because="hydra-core 1.1 and later warn about fairseq's own config.yaml and use of the compose "
    "API at every start",
    conditions=[since("hydra", 1, 1)],
)
def quiet_hydra(module: PatchedModule) -> None:
    """Silence hydra's warnings about fairseq."""
    _ignore(HYDRA)


@patch(
    "fairseq.tasks.fairseq_task",
    because="torch 2.0 and later warn that fairseq mixes mask types, pins memory without a GPU and "
    "calls torch.cuda.amp",
    conditions=[since("torch", 2, 0)],
)
def quiet_torch(module: PatchedModule) -> None:
    """Silence torch's warnings about fairseq."""
    _ignore(TORCH)


@patch(
    "fairseq.models.model_utils",
    because="torch 2.14 warns whenever torch.jit.script is called, as fairseq does at every start",
    conditions=[since("torch", 2, 13)],
    moment=BEFORE,
)
def quiet_torchscript(module_name: str) -> None:
    """Silence the warning while the one module of fairseq that calls it is imported."""
    for category in (DeprecationWarning, FutureWarning):
        warnings.filterwarnings("ignore", message=TORCHSCRIPT, category=category)


@patch(
    "fairseq.models.model_utils",
    because="torch 2.14, as before: what other modules script is theirs to hear of",
    conditions=[since("torch", 2, 13)],
)
def loud_torchscript(module: PatchedModule) -> None:
    """Let the warning be heard again."""
    filters: Any = warnings.filters  # declared as a sequence that cannot be changed
    filters[:] = [entry for entry in filters if getattr(entry[1], "pattern", None) != TORCHSCRIPT]
