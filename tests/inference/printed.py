"""What fairseq-interactive prints, taken apart: beside it stand the results in Python."""

from typing import Dict, List, NamedTuple

import pytest
from common import inprocess
from options.systems import SYSTEMS


class Printed(NamedTuple):
    """A hypothesis: its D- text, its score, and the scores of its tokens."""

    text: str
    score: float
    token_scores: List[float]


def printed(output: str) -> Dict[int, List[Printed]]:
    """{number of the line: its hypotheses} of what fairseq-interactive has printed."""
    by_sentence: Dict[int, List[Printed]] = {}
    for line in output.splitlines():
        label, _, rest = line.partition("\t")
        if label.startswith("D-"):
            score, _, text = rest.partition("\t")
            by_sentence.setdefault(int(label[2:]), []).append(Printed(text, float(score), []))
        elif label.startswith("P-"):
            by_sentence[int(label[2:])][-1].token_scores.extend(map(float, rest.split()))
    return by_sentence


def interactive(name, data, checkpoint, file, *more):
    """What the command prints for a file, by the options of a system."""
    system = SYSTEMS[name]
    words = ["--task", system.task, "--path", checkpoint, "--input", file]
    words += ["--max-len-a", 0] if "--max-len-b" in more else []
    direction = [] if "-s" in more else system.inference.split()
    return printed(inprocess.interactive(data, *words, *direction, *more))


def check_same(results, expected) -> None:
    """The results in Python are what was printed, text and scores."""
    assert len(results) == len(expected)
    for number, result in enumerate(results):
        assert len(result.hypotheses) == len(expected[number])
        for hypothesis, other in zip(result.hypotheses, expected[number]):
            assert hypothesis.text == other.text
            assert hypothesis.score == pytest.approx(other.score, abs=2e-4)
            assert hypothesis.token_scores == pytest.approx(other.token_scores, abs=2e-4)
