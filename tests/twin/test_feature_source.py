"""fairseq-generate in half precision: features follow the parameters' type."""

import pytest
from common import inprocess
from options.systems import SYSTEMS, Data

FEATURES = ["twin_caption_lstm", "twin_caption_attention", "twin_speech_lstm"]


@pytest.mark.parametrize("name", FEATURES)
def test_features_follow(toy_corpus, tmp_path_factory, name):
    system, data = SYSTEMS[name], Data(toy_corpus, tmp_path_factory.mktemp)
    folder = tmp_path_factory.mktemp("trained")
    trial = ["--max-update", 1, "--batch-size", 8, "--disable-validation", "--save-dir", folder]
    inprocess.train(*system.words(data[system.data], *trial))
    words = system.inference_words(data[system.data], folder / "checkpoint_last.pt")
    single = inprocess.hypotheses(inprocess.generate(*words))
    half = inprocess.hypotheses(inprocess.generate(*words, "--bf16"))
    assert single.keys() == half.keys()
    for number, nbest in single.items():
        assert half[number][0][0] == pytest.approx(nbest[0][0], abs=0.1)
