"""fairseq's commands in forked processes: what takes seconds to import is imported once."""

import importlib
import logging
import os
import sys
import tempfile
import time
import traceback
from typing import Callable, Dict, List, NamedTuple

MODULES = {
    "fairseq-preprocess": "fairseq_cli.preprocess",
    "fairseq-train": "fairseq_cli.train",
    "fairseq-generate": "fairseq_cli.generate",
    "fairseq-interactive": "fairseq_cli.interactive",
    "fairseq-validate": "fairseq_cli.validate",
    "fairseq-eval-lm": "fairseq_cli.eval_lm",
    "fairseq-score": "fairseq_cli.score",
    "fairseq-hydra-train": "fairseq_cli.hydra_train",
}


class Ended(NamedTuple):
    """How a command ended: exit status, and all that it printed."""

    status: int
    text: str


def commands() -> Dict[str, Callable]:
    """{name of a command: its function}, all imported."""
    import fairseq_ext  # noqa: F401
    from fairseq_ext.__main__ import main

    functions = {"fairseq-ext": main}
    for name, module in MODULES.items():
        functions[name] = importlib.import_module(module).cli_main
    return functions


def run(words: List[str], cwd, stdin: str = "", seconds: float = 120) -> Ended:
    """Run a command line in a fork of this process, in the folder `cwd`.

    TimeoutError, with what was printed, when it takes longer than `seconds`.
    """
    function = commands()[words[0]]
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as typed:
        typed.write(stdin.encode("utf-8", "surrogateescape"))
        typed.seek(0)
        child = os.fork()
        if child == 0:
            _run_here(function, words, cwd, typed, output)
        status = _wait(child, seconds)
        output.seek(0)
        text = output.read().decode("utf-8", "replace")
    if status is None:
        raise TimeoutError(f"more than {seconds} s: {' '.join(words)}\n{text[-2000:]}")
    return Ended(status, text)


def _wait(child: int, seconds: float):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return None


def _run_here(function, words, cwd, typed, output):
    """In the child: become the command; never returns."""
    status = 70
    try:
        os.chdir(cwd)
        for number, stream in enumerate((typed, output, output)):
            os.dup2(stream.fileno(), number)
        sys.stdin = open(0, encoding="utf-8", closefd=False)
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False, buffering=1)
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False, buffering=1)
        logging.getLogger().handlers[:] = [logging.StreamHandler(sys.stdout)]
        logging.getLogger().setLevel(logging.INFO)
        sys.argv = list(words)
        status = function() or 0
    except SystemExit as leaving:
        if isinstance(leaving.code, str):
            print(leaving.code, file=sys.stderr)
        status = leaving.code if isinstance(leaving.code, int) else bool(leaving.code)
    except BaseException:  # noqa: BLE001  (what Python does with a process that fails)
        traceback.print_exc()
        status = 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(int(status))
