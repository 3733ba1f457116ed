"""What the page shows when requests cross, fail, or are given up: its scripts in node."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "fairseq_ext" / "tools" / "serving" / "page"
EMPTY = {"results": "", "isBusy": False, "hasBeam": True}


@pytest.fixture
def shown(tmp_path):
    """Function name of a scenario -> {"results", "status", "isBusy", "hasBeam"} of the page."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    for path in (*PAGE.glob("*.js"), HERE / "page_in_node.mjs"):
        shutil.copy(path, tmp_path)
    (tmp_path / "package.json").write_text('{"type": "module"}')

    def run(scenario):
        words = [node, tmp_path / "page_in_node.mjs", scenario]
        return json.loads(subprocess.run(words, check=True, capture_output=True, timeout=60).stdout)

    return run


def test_a_translation_and_its_way_back(shown):
    page = shown("answers")
    assert "of first" in page["results"] and "There and back" in page["results"]
    assert "dual inference" in page["results"] and page["status"].endswith(" s")


def test_a_word_of_no_probability_is_not_certain(shown):
    assert shown("a_word_of_no_probability")["results"].split()[-4:] == ["a", "-1.00", "b", "–"]


def test_words_have_the_characters_that_are_spelt_in_bytes(shown):
    """A sentencepiece model with byte_fallback; a text may look like such a piece."""
    words = shown("characters_in_bytes")["results"].split()
    assert words[-4:] == ["\u1230ab", "-5.00", "<0xE1>", "-2.00"]


def test_tags_that_nothing_has_cut_are_words(shown):
    words = shown("tags_beside_pieces")["results"].split()
    assert words[-6:] == ["O", "-1.00", "B-PER", "-1.00", "end", "-1.00"]


@pytest.mark.parametrize("scenario", ["another_direction", "another_direction_on_the_way_back"])
def test_an_answer_to_another_direction_is_not_shown(shown, scenario):
    assert shown(scenario) == {**EMPTY, "status": ""}


def test_an_answer_to_another_text_is_not_shown(shown):
    assert shown("another_text_on_the_way_back") == {**EMPTY, "status": "…", "isBusy": True}


def test_what_is_given_up_for_no_text_is_not_awaited(shown):
    assert shown("no_text") == {**EMPTY, "status": "Type a sentence first."}


def test_the_page_of_a_proxy_is_an_error_with_its_status(shown):
    assert shown("page_of_a_proxy")["status"] == "502 Bad Gateway: not of this server"


def test_a_server_that_has_ended_is_an_error_that_says_so(shown):
    assert shown("ended_server")["status"] == "The server does not answer: has it ended?"
    results = shown("ended_server_on_the_way_back")["results"]
    assert "of first" in results and "The server does not answer" in results


def test_why_there_is_no_score_is_said(shown):
    assert "Without the way back: too many tokens" in shown("no_score")["results"]


def test_labels_that_are_numbers_are_shown_by_probability(shown):
    words = shown("labels_that_are_numbers")["results"].split()
    assert [word for word in words if word in ("7", "1", "3")] == ["7", "1", "3"]


def test_a_beam_that_is_not_seen_refuses_nothing(shown):
    """Whatever was typed there for another model."""
    assert shown("labels") == {**EMPTY, "status": "", "hasBeam": False}
