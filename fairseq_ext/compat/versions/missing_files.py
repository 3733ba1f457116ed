"""Files that fairseq's repository has and its archive on PyPI has not: their errors say so."""

from __future__ import annotations

import importlib.machinery
import sys
from pathlib import Path

from ..patch_registry import BEFORE, PatchedModule, patch
from ..user_errors import OptionError

MISSING_PACKAGE = "fairseq.models.speech_to_text.modules"
SIMULTANEOUS = "examples.simultaneous_translation"
REMEDY = (
    f"the archive of fairseq on PyPI lacks {MISSING_PACKAGE.replace('.', '/')}, which encoders "
    "that stream speech need; allowed: a clone of fairseq's repository, installed with "
    "pip install --no-deps --no-build-isolation --editable CLONE"
)


@patch(
    MISSING_PACKAGE,
    because="fairseq 0.12.2: its archive on PyPI lacks this folder; examples of simultaneous "
    "translation end in 'No module named'",
    moment=BEFORE,
)
def missing_files_are_named(module_name: str) -> None:
    """Raise ModuleNotFoundError with the remedy where the folder is not there."""
    parent = sys.modules[module_name.rpartition(".")[0]]
    if importlib.machinery.PathFinder.find_spec(module_name, parent.__path__) is None:
        raise ModuleNotFoundError(REMEDY, name=module_name)


@patch(
    "fairseq.tasks.simultaneous_translation",
    because="fairseq 0.12.2: simul_speech_to_text and simul_text_to_text advise to install "
    "fairseq, which does not help: the archive on PyPI lacks files that their models import",
)
def simultaneous_tasks_say_what_they_need(module: PatchedModule) -> None:
    """Name the --user-dir that has the models."""

    def check_import(flag: bool) -> None:
        # flag: whether they were imported before the options were read
        if not flag and SIMULTANEOUS not in sys.modules:
            folder = Path(str(module.__file__)).parents[1] / SIMULTANEOUS.replace(".", "/")
            raise OptionError(
                "simul_speech_to_text and simul_text_to_text need the models of fairseq's example; "
                f"allowed: --user-dir {folder}"
            )

    module.check_import = check_import
