"""The demo's modules, which pyproject.toml puts on the path."""

import importlib

import pytest


@pytest.fixture(scope="session")
def demo_module():
    """`demo_module("corpus")`: a module of examples/demo; `run` is a name of other scripts too."""
    return lambda name: importlib.import_module("examples.demo.run" if name == "run" else name)
