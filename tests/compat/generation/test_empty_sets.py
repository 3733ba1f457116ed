"""Scorers of programs and plugins, which fill, copy and store them in ways of their own."""

import copy
import pickle

import fairseq_cli.generate
import pytest
from fairseq import scoring
from fairseq.data import Dictionary
from fairseq.scoring import BaseScorer


class Lines(BaseScorer):
    """Counts the lines that it has."""

    def add_lines(self, lines):
        self.ref += lines

    def score(self):
        return len(self.ref)

    def result_string(self):
        return f"{self.score()} lines"


@pytest.fixture
def scorer(monkeypatch):
    monkeypatch.setattr(scoring, "_build_scorer", Lines)
    return scoring.build_scorer("lines", Dictionary())


def test_scorers_of_programs_are_those_of_fairseq(scorer):
    scorer.add_lines(["a"])
    assert scorer.result_string() == "1 lines"
    duplicate = copy.deepcopy(scorer)
    duplicate.add_string(ref="b", pred="c")
    assert (scorer.score(), duplicate.score()) == (1, 2)
    assert pickle.loads(pickle.dumps(scorer)).ref == ["a"]


def test_the_command_has_no_result_without_sentences(scorer, monkeypatch):
    monkeypatch.setattr(scoring, "_build_scorer", Lines)
    scorer = fairseq_cli.generate.scoring.build_scorer("lines", Dictionary())
    assert scorer.result_string() == "no sentence to score"
    scorer.add_string("a", "b")
    assert scorer.result_string() == "1 lines"
    assert pickle.loads(pickle.dumps(scorer)).ref == ["a"]
