"""The table of modules and tests names files that are there."""

from pathlib import Path

import pytest
from mutation.targets import TESTS

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("module", TESTS)
def test_files_exist(module):
    assert (REPOSITORY / module).is_file()
    tests = [path for path in TESTS[module] if not path.startswith("--")]
    assert tests and all((REPOSITORY / path).is_file() for path in tests)
