"""What is said of files that the archive on PyPI lacks."""

import importlib
import sys

import pytest

from fairseq_ext.compat import patch_registry
from fairseq_ext.compat.user_errors import OptionError
from fairseq_ext.compat.versions.missing_files import (
    MISSING_PACKAGE,
    SIMULTANEOUS,
    missing_files_are_named,
)


def test_import_says_what_is_missing():
    for _ in range(2):
        with pytest.raises(ModuleNotFoundError, match="lacks fairseq/models/speech_to_t") as error:
            importlib.import_module(MISSING_PACKAGE + ".emformer")
        assert error.value.name == MISSING_PACKAGE
    (row,) = [row for row in patch_registry.status() if row.name == "missing_files_are_named"]
    assert row.active


def test_nothing_is_said_where_the_files_are(monkeypatch, tmp_path):
    folder = tmp_path / "modules"
    folder.mkdir()
    (folder / "__init__.py").write_text("", encoding="utf-8")
    parent = importlib.import_module(MISSING_PACKAGE.rpartition(".")[0])
    monkeypatch.setattr(parent, "__path__", [*parent.__path__, str(tmp_path)])
    missing_files_are_named(MISSING_PACKAGE)
    try:
        assert importlib.import_module(MISSING_PACKAGE).__file__ == str(folder / "__init__.py")
    finally:
        sys.modules.pop(MISSING_PACKAGE, None)


def test_simultaneous_tasks_say_what_they_need(monkeypatch):
    from fairseq.tasks.simultaneous_translation import check_import

    monkeypatch.delitem(sys.modules, SIMULTANEOUS, raising=False)
    check_import(True)
    with pytest.raises(OptionError, match="allowed: --user-dir .*/examples/simultaneous_translat"):
        check_import(False)
    monkeypatch.setitem(sys.modules, SIMULTANEOUS, sys)  # as --user-dir imports it
    check_import(False)


def test_other_failures_of_such_patches_are_noted(monkeypatch):
    monkeypatch.setattr(patch_registry, "_PATCHES", [])

    @patch_registry.patch("json", because="test", moment=patch_registry.BEFORE)
    def needs_more(name):
        raise ModuleNotFoundError("No module named 'other'", name="other")

    (noted,) = patch_registry.all_patches()
    patch_registry.apply_patch(noted, "json", "json")
    assert noted.failures == {"json": "ModuleNotFoundError: No module named 'other'"}
