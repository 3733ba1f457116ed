"""`make fairseq-tests`: the tests of a checkout run on the installed fairseq."""

import subprocess
import sys
from pathlib import Path

import pytest
from campaigns import fairseq_suite
from campaigns.fairseq_suite import Result

REPOSITORY = Path(__file__).resolve().parents[1]
FILES = {
    "fairseq/__init__.py": "raise RuntimeError('the package of the checkout is not used')",
    "tests/__init__.py": "",
    "tests/utils.py": "value = 3",
    "tests/test_good.py": """
import unittest
import tests.utils as test_utils
from fairseq.dataclass import FairseqDataclass

class TestGood(unittest.TestCase):
    def test_package(self):
        self.assertEqual(FairseqDataclass.__module__, "fairseq.dataclass.configs")

    def test_helpers(self):
        self.assertEqual(test_utils.value, 3)

    @unittest.skip("no GPU")
    def test_gpu(self):
        pass

    def test_bad(self):
        self.fail()
""",
    "tests/deeper/test_examples.py": """
import examples.some
from scripts.other import value

def test_example():
    assert (examples.some.value, value) == (4, 5)
""",
    "tests/test_crash.py": "import os\n\ndef test_crash():\n    os._exit(7)\n",
    "tests/test_import.py": "import no_such_module_anywhere\n",
    "tests/test_empty.py": "",
    "examples/__init__.py": "",
    "examples/some.py": "value = 4",
    "scripts/other.py": "value = 5",
}


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """A made checkout, with the ways in which a file of tests can end."""
    folder = tmp_path_factory.mktemp("checkout")
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.mark.slow
def test_a_checkout(checkout, tmp_path):
    page = tmp_path / "new" / "page.md"
    command = [sys.executable, "-m", "campaigns.fairseq_suite", str(checkout), "--into", str(page)]
    done = subprocess.run(command, cwd=REPOSITORY / "tests", check=False, timeout=600)
    assert done.returncode == 1
    text = page.read_text(encoding="utf-8")
    assert "3 passed, 2 failed, 1 skipped, in 5 files" in text
    assert "| `tests/test_good.py` | 2 | 1 | 1 | - | - |" in text
    assert "| `tests/deeper/test_examples.py` | 1 | 0 | 0 | - | - |" in text
    assert text.splitlines()[-3:] == [
        "- `tests/test_good.py` TestGood::test_bad",
        "- `tests/test_import.py` tests.test_import",
        "- `tests/test_crash.py` ended with status 7",
    ]


def test_failures_without_the_layer_are_fairseq_s_own():
    plain = {"a": Result({"x": "failed", "y": "passed"}), "b": Result({})}
    results = {"a": Result({"x": "failed", "y": "failed"}), "c": Result({"x": "failed"})}
    assert fairseq_suite.own_failures(results, plain) == {("a", "x")}
    text = fairseq_suite.table(results, plain)
    assert "| `a` | 0 | 2 | 0 | 1 | 1 |" in text and "1 happen without the layer too" in text
    assert "- `a` x (without the layer too)\n- `a` y\n- `c` x\n" in text
    assert "No test failed." in fairseq_suite.table({"a": Result({"x": "passed"})}, {})


def test_a_file_that_does_not_end(checkout, tmp_path):
    fairseq_suite.lay_out(checkout, tmp_path)
    (tmp_path / "tests" / "test_long.py").write_text("import time\ntime.sleep(100)\n")
    result = fairseq_suite.run_file(Path(sys.executable), "tests/test_long.py", tmp_path, 1)
    assert result == Result({}, "not finished after 1 s")


def test_a_folder_without_tests_is_refused(tmp_path):
    with pytest.raises(SystemExit, match=r"SOURCE=.*: there is no tests/test_\*.py; allowed"):
        fairseq_suite.lay_out(tmp_path, tmp_path / "new")
