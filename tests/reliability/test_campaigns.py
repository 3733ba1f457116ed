"""What `make campaign` relies on: processes end within a write, and draws print one line."""

import argparse
import logging
import os
import random
import signal

import pytest
from campaigns import option_pairs, processes

from fairseq_ext.compat import atomic_files

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
    "words, expected",
    [
        (["--absent"], ("refused: the architecture does not have the option", True)),
        (["--d", "1"], ("refused: the architecture does not have the option", True)),
        (["--depth", "x"], ("argument --depth: invalid int value: 'x'", False)),
        (["--depth"], ("argument --depth: expected one argument", False)),
        (["--end"], ("SystemExit: 1: ", False)),
    ],
)
def test_only_an_option_that_there_is_not_is_refused(words, expected, tmp_path, monkeypatch):
    """Other exits are findings: so far, all of them counted as such an option."""

    def compare(words, folder):
        parser = argparse.ArgumentParser(prog="fairseq-train")
        for name in ("--depth", "--dropout"):
            parser.add_argument(name, type=int)
        if words == ["--end"]:
            raise SystemExit(1)
        parser.parse_args(words)

    monkeypatch.setattr(option_pairs, "compare", compare)
    text, is_right = option_pairs.outcome(words, tmp_path)
    assert text.endswith(expected[0]) and is_right == expected[1]
