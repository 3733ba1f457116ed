"""Text to speech in Python: the voice, and the number of symbols."""

from types import SimpleNamespace

import pytest
from common.words import dictionary_with
from fairseq.models.text_to_speech.hub_interface import TTSHubInterface

TASK = SimpleNamespace(
    data_cfg=SimpleNamespace(hub={"speaker": 2}, bpe_tokenizer={}),
    speaker_to_id={"a": 0, "b": 1, "c": 2},
    src_dict=dictionary_with("a", "b"),
)


def test_all_symbols_are_counted():
    inputs = TTSHubInterface.get_model_input(TASK, "a b a")["net_input"]
    assert inputs["src_tokens"].tolist() == [[4, 5, 4, 2]] and inputs["src_lengths"].tolist() == [4]


@pytest.mark.parametrize(("speaker", "expected"), [(None, 2), (0, 0), (1, 1)])
def test_the_speaker_of_the_caller_counts(speaker, expected):
    sample = TTSHubInterface.get_model_input(TASK, "a", speaker)
    assert sample["speaker"].tolist() == [[expected]]


def test_a_speaker_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match="speaker 3 is not there; allowed: 0 to 2"):
        TTSHubInterface.get_model_input(TASK, "a", 3)
