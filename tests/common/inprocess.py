"""fairseq's commands run inside the test process: importing torch once instead of once a command.

What these functions do not cover (argument parsing of a fresh process, --user-dir) is tested by
tests/test_cli.py and tests/test_user_dir.py with real processes.
"""

import contextlib
import io
import json
import logging

import torch
from fairseq import options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.logging import metrics
from fairseq_cli import generate as generate_command
from fairseq_cli import interactive as interactive_command
from fairseq_cli import train as train_command
from fairseq_cli import validate as validate_command

import fairseq_ext  # noqa: F401  (registers what the commands name)


class _Lines(logging.Handler):
    def __init__(self):
        super().__init__()
        self.lines = []

    def emit(self, record):
        self.lines.append(record.getMessage())


@contextlib.contextmanager
def logged_lines():
    """The messages logged meanwhile, as a list."""
    handler, root = _Lines(), logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    try:
        yield handler.lines
    finally:
        root.removeHandler(handler)
        root.setLevel(level)


def configuration(parser, arguments):
    """What the command would be given for these arguments."""
    args = options.parse_args_and_arch(parser, input_args=[str(word) for word in arguments])
    return convert_namespace_to_omegaconf(args)


def train(*arguments):
    """fairseq-train on the CPU -> [{name: number}], the log's records in their order.

    The records of the validation have names that start with ``valid_``.
    """
    cfg = configuration(
        options.get_training_parser(), [*arguments, "--cpu", "--log-format", "json"]
    )
    metrics.reset()
    torch.set_num_threads(1)
    with logged_lines() as lines:
        train_command.main(cfg)
    records = []
    for line in lines:
        if line.startswith("{"):
            entries = json.loads(line).items()
            records.append({name: _number(value) for name, value in entries})
    return records


def _number(value):
    try:
        return float(value)
    except (TypeError, ValueError):
        return value


def _printed(command, parser, arguments):
    cfg = configuration(parser, [*arguments, "--cpu"])
    metrics.reset()
    torch.set_num_threads(1)
    with contextlib.redirect_stdout(io.StringIO()) as printed, logged_lines() as lines:
        command(cfg)
    return printed.getvalue() + "\n".join(lines)


def generate(*arguments):
    """What fairseq-generate prints."""
    return _printed(generate_command.main, options.get_generation_parser(), arguments)


def interactive(*arguments):
    """What fairseq-interactive prints; name the sentences with --input FILE."""
    parser = options.get_generation_parser(interactive=True)
    return _printed(interactive_command.main, parser, arguments)


def validate(*arguments):
    """What fairseq-validate prints and logs."""
    return _printed(validate_command.main, options.get_validation_parser(), arguments)


def hypotheses(output):
    """{sentence number: [(score, text)]} of the H lines that fairseq-generate printed."""
    found = {}
    for line in output.splitlines():
        if line.startswith("H-"):
            label, score, text = line.split("\t")
            found.setdefault(int(label[2:]), []).append((float(score), text))
    return found


def parameters(checkpoint):
    """{name: tensor} of a checkpoint file."""
    return torch.load(checkpoint, map_location="cpu", weights_only=True)["model"]
