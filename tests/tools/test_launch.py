"""`fairseq-ext run`: which commands there are, and what is refused."""

import argparse
import importlib.util

import pytest

from fairseq_ext.tools import UsageError
from fairseq_ext.tools.installation import launch


@pytest.mark.parametrize("command", launch.COMMANDS)
def test_every_command_is_a_module_of_fairseq(command):
    module = launch.COMMANDS[command]
    assert importlib.util.find_spec(module) is not None
    assert command == module.replace("fairseq_cli.", "fairseq-").replace("_", "-")


def test_the_words_behind_the_command_are_its_own():
    parser = argparse.ArgumentParser()
    launch.add_arguments(parser)
    args = parser.parse_args(["fairseq-score", "--sys", "a", "--help"])
    assert (args.command, args.arguments) == ("fairseq-score", ["--sys", "a", "--help"])


def test_other_commands_are_refused():
    args = argparse.Namespace(command="fairseq-fly", arguments=[])
    with pytest.raises(UsageError, match="COMMAND 'fairseq-fly' is unknown; allowed: fairseq-eval"):
        launch.launch_command(args)
