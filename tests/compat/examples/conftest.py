"""Fixtures of the tests of fairseq's examples."""

import sys
from argparse import Namespace
from pathlib import Path

import pytest


@pytest.fixture
def example():
    """Function: a module of an example, imported as --user-dir imports it.

    folder: that of the --user-dir, below fairseq/examples. name: the module's, below the folder.
    """
    import fairseq
    from fairseq import utils

    def load(folder, name):
        path = Path(fairseq.__file__).parent / "examples" / folder
        utils.import_user_module(Namespace(user_dir=str(path)))
        return sys.modules[f"{path.name}.{name}" if name else path.name]

    return load
