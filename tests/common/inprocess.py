"""fairseq's commands run inside the test process: importing torch once instead of once a command.

What these functions do not cover (argument parsing of a fresh process, --user-dir) is tested by
tests/test_cli.py and tests/test_user_dir.py with real processes.
"""

import contextlib
import io
import json
import logging

import torch
from common.composition import converted
from fairseq import checkpoint_utils, options
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
    """The messages that fairseq logs meanwhile, as a list.

    fairseq-validate removes the handlers of the root logger: they are put back afterwards.
    """
    handler, root = _Lines(), logging.getLogger()
    loggers = [logging.getLogger(name) for name in ("fairseq", "fairseq_cli", "fairseq_ext")]
    before = root.level, list(root.handlers)
    root.setLevel(logging.INFO)
    for logger in loggers:
        logger.addHandler(handler)
    try:
        yield handler.lines
    finally:
        for logger in loggers:
            logger.removeHandler(handler)
        root.setLevel(before[0])
        root.handlers[:] = before[1]


def configuration(parser, arguments):
    """What the command would be given for these arguments; Adam where they name no optimiser."""
    words = [str(word) for word in arguments]
    if "--optimizer" in parser._option_string_actions and "--optimizer" not in words:
        words += ["--optimizer", "adam"]
    args = options.parse_args_and_arch(parser, input_args=words)
    return converted(args)


def parsed(*arguments):
    """The options of fairseq-train on this command line, as a Namespace."""
    parser = options.get_training_parser()
    return options.parse_args_and_arch(parser, [str(word) for word in arguments])


def train(*arguments):
    """fairseq-train on the CPU -> [{name: number}], the log's records in their order.

    The records of the validation have names that start with ``valid_``.
    """
    cfg = configuration(
        options.get_training_parser(),
        [*arguments, "--cpu", "--num-workers", "0", "--log-format", "json"],
    )
    _forget_other_runs()
    with logged_lines() as lines:
        train_command.main(cfg)
    return records(lines)


def records(lines):
    """The JSON objects among logged lines (the printed configuration has single quotes)."""
    entries = (json.loads(line).items() for line in lines if line.startswith('{"'))
    return [{name: _number(value) for name, value in entry} for entry in entries]


def _number(value):
    try:
        return float(value)
    except (TypeError, ValueError):
        return value


def _forget_other_runs():
    """Clear what fairseq keeps in the process: metrics and the best score so far."""
    metrics.reset()
    vars(checkpoint_utils.save_checkpoint).clear()
    vars(train_command.should_stop_early).clear()
    torch.set_num_threads(1)


def _printed(command, parser, arguments):
    cfg = configuration(parser, [*arguments, "--cpu", "--num-workers", 0])
    _forget_other_runs()
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
    """fairseq-validate -> records of its log; what is named here wins over the checkpoint's."""
    words = [
        *(str(word) for word in arguments),
        "--cpu",
        "--num-workers",
        "0",
        "--log-format",
        "json",
    ]
    named = options.parse_args_and_arch(
        options.get_validation_parser(), input_args=words, suppress_defaults=True
    )
    cfg = configuration(options.get_validation_parser(), words)
    _forget_other_runs()
    with logged_lines() as lines:
        validate_command.main(cfg, override_args=named)
    return records(lines)


def hypotheses(output):
    """{sentence number: [(score, text)]} of the H lines that fairseq-generate printed."""
    by_sentence = {}
    for line in output.splitlines():
        if line.startswith("H-"):
            label, score, text = line.split("\t")
            by_sentence.setdefault(int(label[2:]), []).append((float(score), text))
    return by_sentence


def references(output):
    """{sentence number: reference} of the T lines that fairseq-generate printed."""
    lines = [line.split("\t") for line in output.splitlines() if line.startswith("T-")]
    return {int(label[2:]): text for label, text in lines}


def parameters(checkpoint):
    """{name: tensor} of a checkpoint file."""
    return checkpoint_utils.torch.load(checkpoint, map_location="cpu", weights_only=True)["model"]
