"""A process that has imported fairseq's commands and runs each request in a fork of itself.

Importing torch and fairseq takes seconds, which most commands of the tests are too short to repay.
``conftest.run_command`` asks for a command here when its environment is that of the server; tests
of the start-up itself begin processes of their own. A second server has imported the user-dir
besides, for commands with ``--user-dir``.
"""

import argparse
import atexit
import functools
import gc
import importlib
import importlib.util
import json
import os
import random
import subprocess
import sys
import tempfile
import threading

MODULES = {
    "fairseq-preprocess": "fairseq_cli.preprocess",
    "fairseq-train": "fairseq_cli.train",
    "fairseq-generate": "fairseq_cli.generate",
    "fairseq-interactive": "fairseq_cli.interactive",
    "fairseq-validate": "fairseq_cli.validate",
}
# task and model of most commands with --user-dir
USUAL = ("dual_translation", "dual_transformer")
# what tests leave in the environment of their process: pytest, torch's first optimizer, the layer
# and fairseq's iterators set these
LEFT_BY_TESTS = (
    "PYTEST_CURRENT_TEST",
    "TORCHINDUCTOR_CACHE_DIR",
    "FAIRSEQ_EXT_USER_DIRS",
    "PYTHONWARNINGS",
)


def environment(variables):
    """What of the environment a command would find in the shell of a user."""
    return {name: value for name, value in variables.items() if name not in LEFT_BY_TESTS}


class CommandServer:
    """The server as its client sees it; it starts with the first command and ends with the client.

    variables: the environment of the server, and so of all its commands.
    user_dir: what the commands name with ``--user-dir``; None where they name nothing or other
        folders.
    """

    def __init__(self, variables, user_dir=None):
        self.variables = environment(variables)
        self.user_dir = user_dir
        self._process = None

    def runs(self, name, variables):
        """True if the command can be run here."""
        return name in MODULES and variables == self.variables

    def run(self, program, arguments, cwd, stdin, timeout):
        """Run a command and return (status, output): its stdout and stderr together.

        Raises subprocess.TimeoutExpired after `timeout` seconds.
        """
        with tempfile.TemporaryDirectory() as folder:
            typed, output = (os.path.join(folder, name) for name in ("stdin", "output"))
            with open(typed, "w", encoding="utf-8") as file:
                file.write(stdin)
            request = [program, arguments, str(cwd or os.getcwd()), typed, output]
            pid = self._ask(request)
            timer = threading.Timer(timeout, os.kill, (pid, 9))
            timer.start()
            status = json.loads(self._process.stdout.readline())
            timer.cancel()
            if timer.finished.is_set() and status == -9:
                raise subprocess.TimeoutExpired([program, *arguments], timeout)
            with open(output, encoding="utf-8", newline=None) as file:
                return status, file.read()

    def _ask(self, request):
        """Return the number of the process that runs it."""
        if self._process is None:
            imported = [] if self.user_dir is None else [self.user_dir]
            self._process = subprocess.Popen(
                [sys.executable, __file__, *imported],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=self.variables,
                encoding="utf-8",
            )
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())


# ---------------------------------------------------------------- the server


def serve(user_dir=None):
    """Run the commands that are asked for on stdin; answer with process number and exit status."""
    # the commands' own streams are files that are opened in their place
    with open(os.dup(0), encoding="utf-8") as requests, open(os.dup(1), "w") as answers:
        os.dup2(os.open(os.devnull, os.O_RDWR), 0)
        os.dup2(2, 1)
        # a command finds the scripts' folder there, not that of the tests
        sys.path[0] = os.path.dirname(sys.executable)
        commands = {name: importlib.import_module(path) for name, path in MODULES.items()}
        _import_what_optimizers_import()
        _fork_workers()
        if user_dir is not None:
            utils = importlib.import_module("fairseq.utils")
            utils.import_user_module(argparse.Namespace(user_dir=user_dir))
        _compose_quickly(user_dir)
        gc.freeze()  # the collector of a fork would copy every page it looks at
        for line in requests:
            child = os.fork()
            if child == 0:
                _become(commands, *json.loads(line))
            _answer(answers, child)
            _, status = os.waitpid(child, 0)
            _answer(answers, os.waitstatus_to_exitcode(status))


def _import_what_optimizers_import():
    """Import the compiler of torch, as the first optimizer of every process does for seconds.

    Its statistics at the end of a process are left out: they collect the garbage, and so wait
    for processes that load data, where Python would leave them to the operating system.
    """
    if importlib.util.find_spec("torch._dynamo") is None:
        return  # torch before 2.0 has no compiler
    importlib.import_module("torch._dynamo")
    atexit.unregister(importlib.import_module("torch._dynamo.utils").dump_compile_times)


def _fork_workers():
    """Let the workers of --distributed-world-size be forks as well, where fairseq begins anew."""
    processes = importlib.import_module("torch.multiprocessing")
    processes.spawn = functools.partial(processes.start_processes, start_method="fork")


def _compose_quickly(user_dir):
    """Let commands take configurations from common/composition.py, and compose some beforehand."""
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    composition = importlib.import_module("common.composition")
    del sys.path[0]
    vars(importlib.import_module("fairseq.dataclass.utils")).update(composition.IN_PLACE_OF_HYDRA)
    options = importlib.import_module("fairseq.options")
    task, model = ("translation", "transformer") if user_dir is None else USUAL
    for parser in (options.get_training_parser(), options.get_generation_parser()):
        words = ["data", "--task", task, "--path", "model.pt"]
        if "--arch" in parser._option_string_actions:
            words = [*words[:3], "--arch", model, "--optimizer", "adam", "--lr", "0.1"]
        composition.converted(options.parse_args_and_arch(parser, words))


def _answer(answers, value):
    answers.write(json.dumps(value) + "\n")
    answers.flush()


def _become(commands, program, arguments, cwd, typed, output):
    """Run the command in this process, which ends with it."""
    status = 1
    try:
        os.chdir(cwd)
        os.dup2(os.open(typed, os.O_RDONLY), 0)
        written = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(written, 1)
        os.dup2(written, 2)
        random.seed()  # of which fairseq draws the ports of its workers
        sys.argv = [program, *arguments]
        status = commands[os.path.basename(program)].cli_main() or 0
    except SystemExit as leaving:
        if isinstance(leaving.code, str):
            print(leaving.code, file=sys.stderr)
        status = leaving.code if isinstance(leaving.code, int) else bool(leaving.code)
    except BaseException:  # noqa: BLE001  (what Python does with a process that fails)
        sys.excepthook(*sys.exc_info())
    finally:
        # the end of an interpreter
        threading._shutdown()
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(int(status))


if __name__ == "__main__":
    serve(*sys.argv[1:])
