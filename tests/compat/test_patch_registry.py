"""The list of patches and what it reports."""

import re
import sys
import types
from pathlib import Path

import pytest

from fairseq_ext import compat
from fairseq_ext.compat import patch_registry as registry

REPOSITORY = Path(__file__).resolve().parents[2]
PAGE = REPOSITORY / "docs" / "patches.md"


@pytest.fixture
def own_patches(monkeypatch):
    """An empty list of patches for the length of a test."""
    patches = []
    monkeypatch.setattr(registry, "_PATCHES", patches)
    return patches


def test_every_patch_says_why():
    rows = compat.status()
    assert len({row.name for row in rows}) == len(rows) >= 12
    for row in rows:
        assert re.search(r"\d|any torch", row.needed_because), row
        assert row.reason


def test_patches_are_in_the_order_of_the_list():
    """A module that another one imports is read before its turn."""
    defined_in = [patch.function.__module__ for patch in registry.all_patches()]
    modules = [f"fairseq_ext.compat.{name}" for name in compat.PATCH_MODULES]
    assert list(dict.fromkeys(defined_in)) == modules
    assert defined_in == sorted(defined_in, key=modules.index)


def test_every_patch_is_documented():
    page = PAGE.read_text(encoding="utf-8")
    missing = [row.name for row in compat.status() if f"`{row.name}`" not in page]
    assert not missing, f"docs/patches.md does not name {missing}"


def test_nothing_failed_or_came_too_late():
    import fairseq_cli.score
    import fairseq_cli.train  # noqa: F401

    for row in compat.status():
        assert not re.search("failed|was imported before", row.reason), row


def test_conditions():
    assert registry.since("python", 3, 9)() is None
    assert registry.until("python", 3, 9)().startswith("not needed with python 3.")
    assert registry.since("torch", 1, 0)() is None
    assert "torch" in registry.since("torch", 99, 0)()


@pytest.mark.parametrize(
    "text, version", [("2.13.0+cpu", (2, 13)), ("2.13rc1", (2, 13)), ("1.0a0", (1, 0)), ("3", (3,))]
)
def test_versions_are_read(text, version, monkeypatch):
    package = types.ModuleType("package_of_a_version")
    package.__version__ = text
    monkeypatch.setitem(sys.modules, package.__name__, package)
    assert registry.installed_version(package.__name__) == version


def test_unneeded_patch_is_not_applied(own_patches):
    @registry.patch("json", because="test", conditions=[registry.since("python", 99, 0)])
    def never(module):
        raise AssertionError

    assert registry.needed_patches("json", registry.AFTER) == []
    (row,) = registry.status()
    assert not row.active and row.reason.startswith("not needed with python")


def test_switch(own_patches, monkeypatch):
    @registry.patch("json", because="test")
    def example(module):
        pass

    assert len(registry.needed_patches("json", registry.AFTER)) == 1
    monkeypatch.setenv(registry.OFF_VARIABLE, "other,example")
    assert registry.needed_patches("json", registry.AFTER) == []
    assert registry.status()[0].reason == "switched off by FAIRSEQ_EXT_COMPAT_OFF"


def test_patch_that_does_not_fit_is_reported(own_patches, caplog):
    @registry.patch("json", because="test")
    def fork(module):
        _ = module.not_there

    registry.apply_patch(own_patches[0], "json", types.ModuleType("json"))
    assert "patch fork: AttributeError" in caplog.text
    (row,) = registry.status()
    assert not row.active and row.reason.startswith("failed on json: AttributeError")


def test_patch_is_applied_once(own_patches):
    calls = []

    @registry.patch("json", because="test")
    def once(module):
        calls.append(module)

    for _ in range(2):
        registry.apply_patch(own_patches[0], "json", types.ModuleType("json"))
    assert len(calls) == 1
