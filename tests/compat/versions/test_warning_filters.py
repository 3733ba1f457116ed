"""Exactly the warnings that fairseq causes are silent."""

import subprocess
import sys
import warnings

import pytest

from fairseq_ext.compat.versions import warning_filters

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
    (TORCH, "`broadcast_buffers` is deprecated. Use", "fairseq_ext.compat.training.distributed"),
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


TORCHSCRIPT = "`torch.jit.script` is {}. Please switch to `torch.compile` or `torch.export`."


@pytest.mark.parametrize("category", [DeprecationWarning, FutureWarning])
@pytest.mark.parametrize("state", ["deprecated", "not supported in Python 3.14+ and may break"])
def test_torchscript_is_silent_while_fairseq_s_module_is_imported(state, category):
    text = TORCHSCRIPT.format(state)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        before = list(warnings.filters)
        warning_filters.quiet_torchscript("fairseq.models.model_utils")
        warnings.warn_explicit(text, category, "file.py", 1, module="torch.jit._script")
        assert not caught
        warning_filters.loud_torchscript(None)
        assert warnings.filters == before
        warnings.warn_explicit(text, category, "file.py", 1, module="torch.jit._script")
        assert len(caught) == 1


def test_the_start_is_silent():
    """Of a process that hears of everything."""
    code = "import fairseq.models.model_utils"
    command = [sys.executable, "-W", "error:`torch.jit.script`", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert "torch.jit.script" not in done.stderr and done.returncode == 0, done.stderr
