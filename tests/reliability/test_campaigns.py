"""What `make campaign` relies on: processes end within a write, and draws print one line."""

import contextlib
import io
import logging
import os
import random
import signal
import sys

import pytest
from campaigns import interrupted, option_pairs, processes
from campaigns.scenarios import OPTIMISE, SCENARIOS, SYNTHETIC
from common import checkpoints, inprocess

from fairseq_ext.compat import atomic_files
from fairseq_ext.compat.user_errors import OptionError

OLD, NEW = b"a" * 100_000, b"b" * 100_000


def write_until_killed(path: str, seed: int) -> None:
    """In a child: what the campaign does before a training, then more writes than it allows."""
    processes._kill_in_write(random.Random(seed))
    for _ in range(9):
        with atomic_files.atomic_write(path) as file:
            for start in range(0, len(NEW), 10_000):
                file.write(NEW[start : start + 10_000])


@pytest.mark.parametrize("seed", range(8))
def test_a_write_is_cut_off(seed, tmp_path):
    path = tmp_path / "checkpoint_last.pt"
    path.write_bytes(OLD)
    child = os.fork()
    if child == 0:
        try:
            write_until_killed(str(path), seed)
        finally:
            os._exit(1)
    assert processes.wait(child) == -signal.SIGKILL
    assert path.read_bytes() in (OLD, NEW)


def test_the_seeds_have_all_moments():
    drawn = set()
    for seed in range(8):
        rng = random.Random(seed)
        rng.randint(1, 8)  # which write
        drawn.add(rng.choice(processes.MOMENTS))
    assert drawn == set(processes.MOMENTS)


def test_a_draw_prints_nothing_of_its_training(tmp_path, monkeypatch, capfd):
    """The log's handler has the stream that it was given before the fork."""
    logger = logging.getLogger("draw")
    monkeypatch.setattr(logger, "propagate", False)

    def outcome(words, folder):
        logger.warning("a line of the log")
        return " ".join(words), True

    with open(1, "w", closefd=False) as stdout:  # as sys.stdout where pytest captures nothing
        monkeypatch.setattr(logger, "handlers", [logging.StreamHandler(stdout)])
        monkeypatch.setattr(option_pairs, "outcome", outcome)
        assert option_pairs.in_a_fork(["--seed", "7"], tmp_path) == ("--seed 7", True)
    assert capfd.readouterr() == ("", "")
    assert (tmp_path / "output").read_text(encoding="utf-8") == "a line of the log\n"


@pytest.mark.parametrize(
    "logged, parts",
    [
        ({("inner", 3): [{"loss": 2.0}]}, ["('valid', 6): not by the interrupted training"]),
        ({("inner", 3): [{"loss": 2.0}], ("valid", 6): [{"loss": 1.0}, {"loss": 1.5}]}, ["1.5"]),
        ({("inner", 3): [{"loss": 2.0}] * 2, ("valid", 6): [{"loss": 1.0}]}, []),
        ({("inner", 3): [{"loss": 2.0}], ("valid", 6): [{"loss": 1.0}], ("valid", 7): [{}]}, ["7"]),
        ({}, ["('inner', 3)", "('valid', 6)"]),
    ],
)
def test_what_an_interrupted_training_did_not_log_is_a_difference(logged, parts):
    whole = {("inner", 3): [{"loss": 2.0}], ("valid", 6): [{"loss": 1.0}], ("train", 6): [{}]}
    problems = interrupted.log_differences(whole, logged)
    assert len(problems) == len(parts)
    assert all(part in problem for part, problem in zip(parts, problems))


def test_a_draw_that_ends_alone_is_not_taken_for_one_without_an_end(tmp_path, monkeypatch):
    """As a fault of memory ends a process, or the end of a test machine's."""
    monkeypatch.setattr(option_pairs, "outcome", lambda words, folder: os.kill(os.getpid(), 9))
    text = "no report: the process ended with -9"
    assert option_pairs.in_a_fork([], tmp_path) == (text, False)


@pytest.mark.parametrize(
    "error, is_right",
    [
        ("usage: a\na: error: unrecognized arguments: --rate 3", True),
        ("a: error: something else", False),
        ("done", False),
    ],
)
def test_a_draw_is_refused_by_a_message_that_names_an_option(
    error, is_right, tmp_path, monkeypatch
):
    def compare(words, folder):
        print(error, file=sys.stderr)
        raise SystemExit(2)

    monkeypatch.setattr(option_pairs, "compare", compare)
    with open(2, "w", closefd=False) as stderr:  # as sys.stderr where pytest captures nothing
        monkeypatch.setattr(sys, "stderr", stderr)
        text, is_as_it_should_be = option_pairs.in_a_fork([], tmp_path)
    assert (text, is_as_it_should_be) == (f"refused: {error.splitlines()[-1]}", is_right)


def is_accepted(words):
    """True if fairseq-train takes these words, as far as the reading of options tells."""
    with contextlib.redirect_stderr(io.StringIO()):
        try:
            inprocess.parsed("data", *OPTIMISE, *words, "--save-dir", "x")
        except (OptionError, SystemExit):
            return False
    return True


def test_every_option_that_is_drawn_is_accepted_by_a_training():
    """One that is refused in every draw would never be tried, and nobody would see it."""
    trainings = [words for _, words in {**SCENARIOS, **SYNTHETIC}.values()]
    for option in option_pairs.options():
        is_tried = any(is_accepted([*words, *option]) for words in trainings)
        assert is_tried, f"refused by every training: {' '.join(option)}"


def test_a_resumed_training_that_logs_nothing_differs(tmp_path, monkeypatch):
    """It would be equal to the end of any log."""
    from reliability import test_every_update as training

    state = {"model": {}, "metrics": {}}
    monkeypatch.setattr(training, "stops", lambda folder: [tmp_path / "checkpoint_1_3.pt"])
    logs = iter([[{"loss": 1.0}], []])
    monkeypatch.setattr(training, "train", lambda words, folder: next(logs))
    monkeypatch.setattr(checkpoints, "compared", lambda path: state)
    monkeypatch.setattr(checkpoints, "meters", lambda path: state)
    (tmp_path / "checkpoint_1_3.pt").touch()
    assert option_pairs.compare([], tmp_path).startswith("DIFFERS")
