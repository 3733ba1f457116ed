"""Exactly the warnings that fairseq causes are silent."""

import warnings

import pytest

from fairseq_ext.compat import quiet

SILENT = [
    (quiet.quiet_hydra, "hydra.experimental.compose() is no longer experimental.", "hydra.experimental.compose"),
    (quiet.quiet_hydra, "\nThe version_base parameter is not specified.", "hydra.experimental.initialize"),
    (quiet.quiet_hydra, "\nThe version_base parameter is not specified.", "fairseq_cli.hydra_train"),
    (quiet.quiet_hydra, "\n'config' is validated against ConfigStore schema with the same name.", "sys"),
    (quiet.quiet_hydra, "In 'config': Usage of deprecated keyword in package header", "hydra.core.x"),
    (quiet.quiet_torch, "`torch.cuda.amp.autocast(args...)` is deprecated.", "fairseq.tasks.fairseq_task"),
    (quiet.quiet_torch, "'pin_memory' argument is set as true but no accelerator is found", "torch.utils.data.dataloader"),
]  # fmt: skip
HEARD = [
    (quiet.quiet_hydra, "\nThe version_base parameter is not specified.", "my_application"),
    (
        quiet.quiet_hydra,
        "\n'mine' is validated against ConfigStore schema with the same name.",
        "x",
    ),
    (quiet.quiet_hydra, "In 'mine': Usage of deprecated keyword in package header", "hydra.core.x"),
    (quiet.quiet_torch, "`torch.cuda.amp.autocast(args...)` is deprecated.", "my_training"),
    (quiet.quiet_torch, "lr_scheduler.step() before optimizer.step()", "torch.optim.lr_scheduler"),
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
