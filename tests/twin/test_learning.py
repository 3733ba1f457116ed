"""A language that can be learnt is learnt, by both networks, and their states come closer."""

import pytest
from common import inprocess

ANNEALED = ["--lr", 0.01, "--lr-scheduler", "inverse_sqrt", "--warmup-updates", 50]


@pytest.mark.slow
@pytest.mark.parametrize("arch", ["twin_lstm_tiny", "twin_transformer_tiny"])
def test_the_toy_language_is_translated(toy_corpus, tmp_path, arch):
    records = inprocess.train(
        *(toy_corpus.two, "--arch", arch, "--criterion", "twin", "--label-smoothing", 0.1),
        *("--optimizer", "adam", *ANNEALED, "--clip-norm", 1, "--max-tokens", 400),
        *("--max-epoch", 60, "--no-save", "--dropout", 0.1, "--twin-weight", 1),
    )
    training = [record for record in records if "train_L_t" in record]
    valid = [record for record in records if "valid_ppl" in record]
    assert valid[-1]["valid_ppl"] < 1.3
    assert training[-1]["train_backward_ppl"] < 2
    # g learns what of the future can be told from the past: states that had moved apart when the
    # networks began to learn come closer again; to less than an eighth of it when this was written
    distances = [float(record["train_L_t"]) for record in training[5:]]
    assert distances[-1] < max(distances) / 4
