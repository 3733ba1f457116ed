"""Sentences are divided among language pairs: each is in one pair, in all its languages."""

from argparse import ArgumentParser

import pytest
from corpora import divide

from fairseq_ext.tools import UsageError

LANGUAGES = ("de", "en", "fr")
PAIRS = ("de-en", "de-fr", "en-fr")


@pytest.fixture
def divided(tmp_path, write):
    """Function (lines of a text, seed) -> {PAIR.LANGUAGE: lines}."""

    def run(count, seed=1, short=0):
        for language in LANGUAGES:
            size = count - short * (language == "fr")
            write(tmp_path / f"train.{language}", [f"{language} {n}" for n in range(size)])
        parser = ArgumentParser()
        divide.add_arguments(parser)
        words = ["--languages", *LANGUAGES, "--train", str(tmp_path / "train")]
        words += ["--seed", str(seed), "--output", str(tmp_path / "out")]
        divide.run(parser.parse_args(words))
        return {
            path.name: path.read_text(encoding="utf-8").splitlines()
            for path in (tmp_path / "out").iterdir()
        }

    return run


def numbers(lines):
    return [int(line.split()[1]) for line in lines]


def test_shares_are_disjoint_complete_and_of_equal_size(divided):
    files = divided(100)
    assert sorted(files) == sorted(f"{pair}.{side}" for pair in PAIRS for side in pair.split("-"))
    shares = []
    for pair in PAIRS:
        first, second = (files[f"{pair}.{side}"] for side in pair.split("-"))
        assert numbers(first) == numbers(second) and first[0].startswith(pair[:2])
        shares.append(numbers(first))
    assert sorted(sum(shares, [])) == list(range(100))
    assert sorted(map(len, shares)) == [33, 33, 34]


def test_the_order_is_random_and_that_of_the_seed(divided):
    first = divided(100)["de-en.de"]
    assert numbers(first) != sorted(numbers(first)) and max(numbers(first[:10])) > 33
    assert divided(100)["de-en.de"] == first != divided(100, seed=2)["de-en.de"]


def test_texts_of_different_length(divided):
    with pytest.raises(UsageError, match=r"train\.de has 9 lines and .*train\.fr 8"):
        divided(9, short=1)


def test_a_pair_without_a_line(divided):
    with pytest.raises(UsageError, match=r"--train .*train: 2 lines; allowed: one for each pair"):
        divided(2)


def test_one_language_has_no_pair(tmp_path):
    parser = ArgumentParser()
    divide.add_arguments(parser)
    words = ["--languages", "de", "--train", "x", "--output", str(tmp_path / "out")]
    with pytest.raises(UsageError, match="--languages de: allowed: 2 or more, each once"):
        divide.run(parser.parse_args(words))
