"""The task fast_translation beside fairseq's: the same output of the same checkpoint."""

import pytest
from common import inprocess

LSTM = [
    f"--{side}-{part}-{kind}"
    for side in ("encoder", "decoder")
    for part, kind in (("embed", "dim"), ("hidden", "size"))
]
SIZES = {
    "transformer_tiny": (),
    "lstm": [word for flag in (*LSTM, "--decoder-out-embed-dim") for word in (flag, 16)],
    "duo_transformer_tiny": (),
}
# searches of our own, and those that are left to fairseq
OPTIONS = {
    "n-best": ("--nbest", 3, "--lenpen", 0.5, "--unkpen", 1, "--min-len", 2),
    "greedy": ("--beam", 1, "--temperature", 0.7),
    "alignment": ("--print-alignment", "hard"),
    "prefix": ("--prefix-size", 1),
    "ngrams": ("--no-repeat-ngram-size", 2),
    "diverse": ("--beam", 4, "--diverse-beam-groups", 2),
    "score": ("--score-reference",),
}


@pytest.fixture(scope="module", params=SIZES)
def checkpoint(request, toy_corpus, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    inprocess.train(
        *(toy_corpus.two, "--task", "fast_translation", "-s", "xx", "-t", "yy"),
        *("--arch", request.param, *SIZES[request.param]),
        *("--optimizer", "adam", "--lr", 0.01, "--max-tokens", 300),
        *("--criterion", "cross_entropy", "--max-update", 20, "--disable-validation"),
        *("--save-dir", folder, "--no-epoch-checkpoints"),
    )
    return folder / "checkpoint_last.pt"


def words_and_numbers(output):
    """What the lines about hypotheses say."""
    words, numbers = [], []
    for word in [part for line in output.splitlines() if line[1:2] == "-" for part in line.split()]:
        try:
            numbers.append(float(word))
        except ValueError:
            words.append(word)
    return words, numbers


@pytest.mark.parametrize("name", OPTIONS)
def test_both_tasks_print_the_same(toy_corpus, checkpoint, name):
    command = [toy_corpus.two, "-s", "xx", "-t", "yy", "--path", checkpoint, "--max-tokens", 400]
    command += ["--max-len-b", 12, *OPTIONS[name], "--gen-subset", "valid"]
    stock, ours = (
        words_and_numbers(inprocess.generate(*command, "--task", task))
        for task in ("translation", "fast_translation")
    )
    assert stock[0] and ours[0] == stock[0]
    assert ours[1] == pytest.approx(stock[1], abs=2e-4)
