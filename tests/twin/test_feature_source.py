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


@pytest.mark.parametrize("flag", ["--required-seq-len-multiple", "--num-batch-buckets"])
def test_the_stock_encoder_refuses_wide_batches(toy_corpus, flag):
    words = SYSTEMS["twin_lstm"].words(toy_corpus.two, "--max-tokens", 90, "--no-save", flag, 8)
    with pytest.raises(ValueError, match=f"^{flag} 8: fairseq's LSTM encoder"):
        inprocess.train(*words)
