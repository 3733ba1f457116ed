"""Modules of fairseq's examples are found under whatever name they were imported."""

import sys
import types

from fairseq_ext.compat.imported_examples import imported_copies, modules_of_examples

NAME = "latent_depth.latent_depth_src.loss"


def imported(monkeypatch, name, file):
    """Return a module that is imported from now on."""
    module = types.ModuleType(name)
    if file is not None:
        module.__file__ = file
    monkeypatch.setitem(sys.modules, name, module)
    return module


def test_examples_are_imported_from_an_installation_or_a_clone():
    assert modules_of_examples("a.b", "c") == (
        *("fairseq.examples.a.b", "fairseq.examples.c"),
        *("examples.a.b", "examples.c"),
    )


def test_a_copy_is_known_by_the_end_of_its_path(monkeypatch):
    path = NAME.replace(".", "/")
    modules = [
        imported(monkeypatch, "examples." + NAME, f"/clone/examples/{path}.py"),
        imported(monkeypatch, "my_plugin.loss", f"/plugins/{path}.py"),
        imported(monkeypatch, "windows.loss", "C:\\plugins\\" + path.replace("/", "\\") + ".py"),
    ]
    imported(monkeypatch, "other.loss", "/plugins/other/loss.py")
    imported(monkeypatch, "no_file.loss", None)
    assert list(imported_copies([NAME])) == [(NAME, module) for module in modules]
    assert not list(imported_copies(["latent_depth.latent_depth_src.los"]))
