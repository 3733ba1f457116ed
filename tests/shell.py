"""Parses the commands of an experiment with the parsers of the programs that they call."""

import argparse
import importlib
import re
import shlex

from experiments.definition import FOLDER
from experiments.execution import Run, data_places, placed
from fairseq import options
from pages import files_may_be_missing
from script_modules import load_script

import fairseq_ext  # noqa: F401  (registers what the commands name)
from fairseq_ext.__main__ import COMMANDS

PARSERS = {
    "fairseq-train": options.get_training_parser,
    "fairseq-preprocess": options.get_preprocessing_parser,
    "fairseq-generate": options.get_generation_parser,
    "fairseq-interactive": options.get_interactive_generation_parser,
    "fairseq-eval-lm": options.get_eval_lm_parser,
}
# what may stand before a command, or instead of one
TOOLS = set("cat cp cut echo grep gzip head mkdir mv rm sed sort tail test true".split())
BEFORE = {"xargs", "do", "then", "time"}


def simple_commands(line):
    """The commands of a line of shell, each a list of words, without what goes to and from files.

    Loops are taken apart; their variables stay as they are.
    """
    lexer = shlex.shlex(line.replace("2>&1", ""), posix=True, punctuation_chars=True)
    lexer.wordchars += "$@%+:,!^{}[]"
    commands, words, is_file = [], [], False
    for token in [*lexer, ";"]:
        if set(token) <= set(";|&()"):
            while words and words[0] in BEFORE:
                words = words[1:]
            if words and words[0] not in ("for", "done", "if", "fi", "else"):
                commands.append(words)
            words = []
        elif set(token) <= set("<>"):
            is_file = True
        elif is_file:
            is_file = False
        else:
            words.append(token)
    return commands


def lines_of(experiment, data, raw):
    """All shell lines of an experiment: the data, then every system with seed 1."""
    lines = [placed(command, data_places(raw, data, 1)) for command in experiment.prepare]
    for system in experiment.systems.values():
        run = Run(system, 1, data, data / "runs")
        lines += [*run.lines("train"), *run.lines("evaluate")]
    return lines


def parse(words):
    """Parse a command; SystemExit for a wrong one, AssertionError for one that is not known."""
    program, *rest = words
    if program in PARSERS:
        if "--user-dir" in rest:  # imported already
            place = rest.index("--user-dir")
            assert rest[place + 1] == "fairseq_ext"
            del rest[place : place + 2]
        parser = PARSERS[program]()
        if program == "fairseq-preprocess":
            parser.parse_args(rest)
        else:
            with files_may_be_missing():
                options.parse_args_and_arch(parser, rest)
    elif program == "fairseq-ext":
        command = COMMANDS[rest[0]]
        module = importlib.import_module(f"fairseq_ext.{command.module}")
        parser = argparse.ArgumentParser(prog=rest[0])
        module.add_arguments(parser)
        args = parser.parse_args(rest[1:])
        if rest[0] == "tune-alpha":
            parse(["fairseq-generate", "--task", "dual_translation", *args.generate])
    elif words[:2] == ["python", "examples/score.py"]:
        load_script(FOLDER / "score.py").arguments(words[2:])
    elif words[:2] == ["python", "examples/prepare.py"]:
        load_script(FOLDER / "prepare.py").arguments(words[2:])
    else:
        is_assignment = re.match(r"\w+=", program)
        assert is_assignment or program in TOOLS or words[:3] == ["python", "-m", "zipfile"], words


def shape(words):
    """What a command is but for files, seeds and sizes: commands of a shape are parsed once."""
    names = [word for word in words if re.fullmatch(r"[-\w,=.]*[a-z][-\w,=.]*", word)]
    return tuple(dict.fromkeys(words[:2] + names))
