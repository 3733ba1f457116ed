"""The demo's modules, imported the way `python examples/demo/run.py` finds them."""

import importlib
import sys
from pathlib import Path

import pytest

DEMO = Path(__file__).resolve().parents[2] / "examples" / "demo"


@pytest.fixture(scope="session")
def demo_module():
    """`demo_module("corpus")`: a module of examples/demo; sys.path is as before afterwards."""
    names = ("corpus", "run", "demo_progress", "demo_scoring", "demo_grammar")
    modules = {}

    def load(name):
        if name not in modules:
            sys.path.insert(0, str(DEMO))
            try:
                modules[name] = importlib.import_module(name)
            finally:
                sys.path.remove(str(DEMO))
        return modules[name]

    yield load
    for name in list(sys.modules):
        if name.split(".")[0] in names:
            del sys.modules[name]
