"""Options of the search that outputs or sources of a kind cannot follow are refused by name."""

import pytest
from common import inprocess
from options.systems import SYSTEMS, Data

LABELS = [
    ["--sampling"],
    ["--prefix-size", 1],
    ["--no-repeat-ngram-size", 2],
    ["--match-source-len"],
    ["--diverse-beam-groups", 5],
    ["--print-step"],
    ["--retain-iter-history"],
]
FEATURES = [["--match-source-len"], ["--print-alignment"], ["--print-step"]]
CASES = [
    *(("dual_lstm_classifier", flags) for flags in LABELS),
    *(("duo_classifier", flags) for flags in LABELS),
    *(("twin_caption_lstm", flags) for flags in FEATURES),
    *(("twin_speech_lstm", flags) for flags in FEATURES),
]


@pytest.fixture(scope="module")
def checkpoints(toy_corpus, tmp_path_factory):
    """Function (system) -> words of fairseq-generate with a checkpoint of one update."""
    data, words = Data(toy_corpus, tmp_path_factory.mktemp), {}

    def trained(name):
        if name not in words:
            system, folder = SYSTEMS[name], tmp_path_factory.mktemp("trained")
            if name == "twin_speech_lstm":
                system = system._replace(task="transcription")
            trial = ["--max-update", 1, "--batch-size", 8, "--disable-validation"]
            inprocess.train(*system.words(data[system.data], *trial, "--save-dir", folder))
            last = folder / "checkpoint_last.pt"
            words[name] = system.inference_words(data[system.data], last, "--max-tokens", 300)
        return words[name]

    return trained


@pytest.mark.parametrize("name, flags", CASES, ids=lambda case: str(case))
def test_refused(checkpoints, name, flags):
    if flags == ["--sampling"]:
        flags = [*flags, "--nbest", 5]
    with pytest.raises(ValueError, match=f"^{flags[0]}.*; allowed: leave it out$"):
        inprocess.generate(*checkpoints(name), *flags)


def test_more_labels_than_a_beam(checkpoints, tmp_path):
    output = inprocess.generate(*checkpoints("dual_lstm_classifier"), "--beam", 1, "--nbest", 2)
    assert {len(nbest) for nbest in inprocess.hypotheses(output).values()} == {2}


def test_no_longer_list_than_the_beam_of_a_search(checkpoints):
    words = checkpoints("dual_lstm_classifier")
    words = [{"text": "label", "label": "text"}.get(word, word) for word in words]
    with pytest.raises(ValueError, match="--nbest 4 is more than --beam 2"):
        inprocess.generate(*words, "--beam", 2, "--nbest", 4, "--max-len-b", 4)


def test_a_translation_model_is_no_language_model(checkpoints):
    words = checkpoints("duo_transformer")
    with pytest.raises(ValueError, match="^--lm-path: the checkpoint holds a DuoTransformerModel"):
        inprocess.generate(*words, "--lm-path", words[words.index("--path") + 1])
