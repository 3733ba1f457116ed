"""Exactly the warnings that fairseq causes are silent."""

import warnings

import pytest

from fairseq_ext.compat import warning_filters

VERSION_BASE = "\nThe version_base parameter is not specified."
SCHEMA = "\n'{}' is validated against ConfigStore schema with the same name."
HEADER = "In '{}': Usage of deprecated keyword in package header"
AUTOCAST = "`torch.cuda.amp.autocast(args...)` is deprecated."
PINNED = "'pin_memory' argument is set as true but no accelerator is found"
HYDRA, TORCH = warning_filters.quiet_hydra, warning_filters.quiet_torch
SILENT = [
    (HYDRA, "hydra.experimental.compose() is no longer experimental.", "hydra.experimental.x"),
    (HYDRA, VERSION_BASE, "hydra.experimental.initialize"),
    (HYDRA, VERSION_BASE, "fairseq_cli.hydra_train"),
    (HYDRA, SCHEMA.format("config"), "sys"),
    (HYDRA, HEADER.format("config"), "hydra.core.default_element"),
    (TORCH, AUTOCAST, "fairseq.tasks.fairseq_task"),
    (TORCH, PINNED, "torch.utils.data.dataloader"),
    (TORCH, "`broadcast_buffers` is deprecated. Use", "fairseq_ext.compat.distributed"),
]
HEARD = [
    (HYDRA, VERSION_BASE, "my_application"),
    (HYDRA, SCHEMA.format("mine"), "sys"),
    (HYDRA, HEADER.format("mine"), "hydra.core.default_element"),
    (TORCH, AUTOCAST, "my_training"),
    (TORCH, "lr_scheduler.step() before optimizer.step()", "torch.optim.lr_scheduler"),
]


def heard(patch, text, module, category):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        patch(None)
        warnings.warn_explicit(text, category, "file.py", 1, module=module)
    return len(caught)


@pytest.mark.parametrize("category", [UserWarning, FutureWarning])
@pytest.mark.parametrize("patch, text, module", SILENT)
def test_silent(patch, text, module, category):
    assert heard(patch, text, module, category) == 0


@pytest.mark.parametrize("patch, text, module", HEARD)
def test_everything_else_is_heard(patch, text, module):
    assert heard(patch, text, module, UserWarning) == 1
    assert heard(patch, "something else", "fairseq.trainer", UserWarning) == 1
