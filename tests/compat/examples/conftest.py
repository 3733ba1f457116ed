"""Fixtures of the tests of fairseq's examples."""

import sys
from argparse import Namespace
from pathlib import Path

import pytest


@pytest.fixture
def example(monkeypatch):
    """Function: a module of an example, imported as --user-dir imports it.

    folder: that of the --user-dir, below fairseq/examples. name: the module's, below the folder.
    """
    import fairseq
    import torch
    from fairseq import utils

    from fairseq_ext.compat.versions import byte_masks, dataclass_defaults

    # a process with a plugin whose source makes masks of bytes changes torch.Tensor
    methods = {name: getattr(torch.Tensor, name) for name in byte_masks.MASKED}
    monkeypatch.setenv(dataclass_defaults.USER_DIRS_VARIABLE, "")

    def load(folder, name):
        path = Path(fairseq.__file__).parent / "examples" / folder
        utils.import_user_module(Namespace(user_dir=str(path)))
        return sys.modules[f"{path.name}.{name}" if name else path.name]

    yield load
    for name, method in methods.items():
        setattr(torch.Tensor, name, method)
