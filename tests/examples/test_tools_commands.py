"""Running commands: their log, their errors, and that none is left behind."""

import os
import signal
import subprocess
import sys

import pytest
from recipe_tools import RecipeError
from recipe_tools.commands import execute, flags

SLEEPER = """
import sys
sys.path.append(sys.argv[1])
from recipe_tools.cli import script
from recipe_tools.commands import execute
code = "import os, time; print(os.getpid(), flush=True); time.sleep(60)"
script(lambda: execute(["python3", "-c", code], sys.argv[2], show=str.strip))
"""


def test_a_stopped_script_stops_its_command(tmp_path, examples_folder):
    words = [sys.executable, "-c", SLEEPER, str(examples_folder), str(tmp_path / "log")]
    with subprocess.Popen(words, stdout=subprocess.PIPE, encoding="utf-8") as process:
        child = int(process.stdout.readline())
        os.kill(child, 0)
        process.terminate()
        assert process.wait(timeout=30) == 128 + signal.SIGTERM
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)


def test_the_end_of_the_log_comes_with_the_error(tmp_path):
    code = "import sys; print('one'); print('two', file=sys.stderr); sys.exit(3)"
    with pytest.raises(RecipeError, match=r"(?s)status 3 of: python3 -c .*two.*log is .*run\.log"):
        execute(["python3", "-c", code], tmp_path / "run.log")
    assert "one" in (tmp_path / "run.log").read_text(encoding="utf-8")
    execute(["python3", "-c", "print('three')"], tmp_path / "run.log", mode="a")
    assert (tmp_path / "run.log").read_text(encoding="utf-8").endswith("three\n")


def test_flags():
    assert flags({"embed_dim": 8, "layers": 2}) == ["--embed-dim", 8, "--layers", 2]
