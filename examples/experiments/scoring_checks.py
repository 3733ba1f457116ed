"""Tries what an evaluation needs, before a training of hours: metrics, and tokenisers of BLEU."""

import itertools
import re
import shlex
from typing import Sequence

from . import UsageError
from .definition import System

SCORING = "python examples/score.py text "
# its options with one word; what follows that is a metric
OF_ONE_WORD = ("--hyp", "--ref", "--into")
SHELL = re.compile(r"\d?[|&;<>]")  # how a word begins that is for the shell


def check_scoring(system: System) -> None:
    """Raise UsageError for a metric or a tokeniser that is not there."""
    tried: set[tuple[str, str]] = set()
    for command in system.evaluate:
        if command.startswith(SCORING):
            try:
                words = shlex.split(command[len(SCORING) :], comments=True)
            except ValueError as error:
                raise UsageError(f"{system.name}: {command}: {error}") from error
            of_command = itertools.takewhile(lambda word: not SHELL.match(word), words)
            check_words(system.name, list(of_command), tried)


def check_words(name: str, words: Sequence[str], tried: set[tuple[str, str]]) -> None:
    """Try the metrics of a command that scores text.

    name: of the system, for errors. words: after `score.py text`. tried: (metric, tokeniser) that
    are known to be there; what is tried is added.
    """
    from fairseq_ext.routed.formats import Malformed

    from .metrics import NAMES, metric_named
    from .scores import fields

    by_option = words_by_option(words)
    language = by_option.get("--ref", [""])[0].rpartition(".")[2]
    form = "LANGUAGE=TOKENISER"
    tokeniser = fields(by_option.get("--tokenize", []), "--tokenize", form).get(language)
    for metric in by_option[""]:
        if metric not in NAMES:
            raise UsageError(f"{name}: the metric {metric!r}; allowed: {', '.join(NAMES)}")
        if (metric, tokeniser or "") not in tried:
            try:
                # some tokenisers are made when they are first needed
                metric_named(metric, tokeniser).statistics(["1 1"], ["1 1"])
            except UsageError as error:
                raise UsageError(f"{name} cannot be scored: {error}") from error
            except Malformed:
                pass  # the metric is there, and refuses these words: they are no tags or trees
            tried.add((metric, tokeniser or ""))


def words_by_option(words: Sequence[str]) -> dict[str, list[str]]:
    """Return {option: its words}, with those of no option under ""."""
    by_option: dict[str, list[str]] = {"": []}
    option = ""
    for word in words:
        if word.startswith("--"):
            option = word
            by_option.setdefault(option, [])
        else:
            by_option[option].append(word)
            option = "" if option in OF_ONE_WORD else option
    return by_option
