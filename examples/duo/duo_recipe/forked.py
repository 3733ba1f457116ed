"""fairseq's commands in forked processes: what takes seconds to import is imported once."""

import multiprocessing
import os
import sys
from argparse import Namespace

from recipe_tools import RecipeError
from recipe_tools.commands import shown, user_dir


def commands():
    """Import fairseq and the plugin, and return {name of a command: its function}."""
    from fairseq import utils
    from fairseq_cli import train, validate

    utils.import_user_module(Namespace(user_dir=str(user_dir())))
    return {"fairseq-train": train.cli_main, "fairseq-validate": validate.cli_main}


def call(function, words, log):
    """Call the function with a command line of its own in the forked process; print to `log`."""
    import torch

    with open(log, "w", encoding="utf-8") as stream:
        os.dup2(stream.fileno(), 1)
        os.dup2(stream.fileno(), 2)
    torch.set_num_threads(1)
    sys.argv = words
    function()


def execute(functions, command, log):
    """Run one of `commands`. Raises RecipeError with the end of the log when it fails."""
    words = [str(word) for word in command]
    arguments = (functions[words[0]], words, log)
    process = multiprocessing.get_context("fork").Process(target=call, args=arguments)
    process.start()
    try:
        process.join()
    except BaseException:
        # an interrupted recipe leaves no training behind
        process.terminate()
        process.join()
        raise
    if process.exitcode:
        with open(log, encoding="utf-8", errors="replace") as lines:
            tail = "".join(list(lines)[-15:])
        raise RecipeError(
            f"status {process.exitcode} of the command {shown(words)}\n"
            f"{tail}the complete log is {log}"
        )
