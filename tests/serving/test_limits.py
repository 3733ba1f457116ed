"""Limits as options of the command line."""

from argparse import ArgumentParser
from dataclasses import fields

import pytest

from fairseq_ext.tools import UsageError
from fairseq_ext.tools.serving.limits import HELP, Limits, add_limits, limits_of


def parsed(*words):
    parser = ArgumentParser()
    add_limits(parser)
    return limits_of(parser.parse_args([str(word) for word in words]))


def test_every_limit_is_an_option():
    assert set(HELP) == {entry.name for entry in fields(Limits)}
    assert parsed() == Limits()
    limits = parsed("--max-body", 10, "--timeout", 0.5, "--max-wait", 0)
    assert (limits.max_body, limits.timeout, limits.max_wait) == (10, 0.5, 0)


@pytest.mark.parametrize(
    "option, value", [("--max-beam", "0"), ("--timeout", "nan"), ("--timeout", "inf"),
                      ("--max-body", "1.5"), ("--max-wait", "-1"), ("--max-queue", "many")]
)  # fmt: skip
def test_a_wrong_limit_is_named(option, value, capsys):
    with pytest.raises(SystemExit):
        parsed(option, value)
    error = capsys.readouterr().err
    assert f"argument {option}: {value!r}; allowed: a" in error


def test_a_request_fits_into_the_queue():
    with pytest.raises(UsageError, match="--max-sentences 9: allowed: at most --max-queue 8"):
        parsed("--max-sentences", 9, "--max-queue", 8)
