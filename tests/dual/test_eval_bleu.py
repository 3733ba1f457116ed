"""--eval-bleu while dual models and separate models train, and the commands after it."""

import pytest
from common.inprocess import generate, hypotheses, train, validate
from fairseq import checkpoint_utils

SEARCH = ("--eval-bleu", "--eval-bleu-args", '{"beam": 2, "max_len_b": 8}')
BEST = ("--best-checkpoint-metric", "bleu", "--maximize-best-checkpoint-metric")
RUN = ("--optimizer", "adam", "--lr", 0.01, "--max-tokens", 400, "--no-epoch-checkpoints")
SIZES = ["--share-all-embeddings", "--dropout", 0]
DUAL = ["--arch", "dual_transformer", *SIZES, "--embed-dim", 16, "--ffn-embed-dim", 16]
DUAL += ["--attention-heads", 2, "--layers", 1]
STACKS = ["--arch", "dual_supervised_transformer", *SIZES]
for _side in ("encoder", "decoder"):
    STACKS += [f"--{_side}-embed-dim", 16, f"--{_side}-ffn-embed-dim", 16]
    STACKS += [f"--{_side}-layers", 1, f"--{_side}-attention-heads", 2]
TAGGED = ["--arch", "tagged_transformer", *STACKS[2:]]
ARCHS = pytest.mark.parametrize(
    "arch",
    [
        pytest.param(DUAL, id="dual"),
        pytest.param(STACKS, id="stacks", marks=pytest.mark.slow),
        pytest.param(TAGGED, id="tagged", marks=pytest.mark.slow),
    ],
)
TWO = ("-s", "xx", "-t", "yy")
THREE = ("--lang-pairs", "xx-yy,xx-zz")


def trained(data, folder, arch, languages, *more):
    """(checkpoint with the best BLEU, last record of the validation)."""
    words = [data, "--task", "dual_translation", *languages, *arch, *RUN, *SEARCH, *BEST]
    words += ["--criterion", "cross_entropy", "--save-dir", folder, "--validate-interval", 99]
    log = train(*words, *more)
    return folder / "checkpoint_best.pt", [record for record in log if "valid_bleu" in record][-1]


@ARCHS
def test_two_languages_and_what_follows(toy_corpus, tmp_path, arch):
    """Both directions are logged; validate repeats the best score; generate translates as well."""
    data = toy_corpus.two
    best, record = trained(data, tmp_path, arch, TWO, "--max-update", 60)
    pairs = ("xx-yy", "yy-xx")
    scores = [record[f"valid_{pair}_bleu"] for pair in pairs]
    assert min(scores) > 1
    assert record["valid_bleu"] == pytest.approx(sum(scores) / 2, abs=0.011)
    assert record["valid_worst_bleu"] == min(scores)
    state = checkpoint_utils.torch.load(best, weights_only=True)
    assert state["extra_state"]["best"] == pytest.approx(record["valid_bleu"], abs=0.01)
    for pair in pairs:
        source, target = pair.split("-")
        words = [data, "--task", "dual_translation", "-s", source, "-t", target, "--path", best]
        (validated,) = validate(*words, "--max-tokens", 400)
        assert validated[f"valid_{pair}_bleu"] > 1
        assert len(hypotheses(generate(*words, "--beam", 2, "--max-tokens", 400))) == 24
    # --lang-pairs takes the place of the -s and -t of the training
    words = [data, "--task", "dual_translation", "--path", best, "--max-tokens", 400]
    (validated,) = validate(*words, "--lang-pairs", "yy-xx")
    assert validated["valid_loss"] == pytest.approx(record["valid_loss"], abs=2e-3)
    for pair in pairs:
        score = record[f"valid_{pair}_bleu"]
        assert validated[f"valid_{pair}_bleu"] == pytest.approx(score, abs=0.01)


@ARCHS
def test_three_languages(toy_corpus, tmp_path, arch):
    _, record = trained(toy_corpus.three, tmp_path, arch, THREE, "--max-update", 3)
    for pair in ("xx-yy", "yy-xx", "xx-zz", "zz-xx"):
        assert record[f"valid_{pair}_bleu"] >= 0


def test_one_direction_of_a_pair(toy_corpus, tmp_path):
    _, record = trained(toy_corpus.two, tmp_path, STACKS, TWO, "--one-way", "--max-update", 3)
    assert "valid_xx-yy_bleu" in record and "valid_yy-xx_bleu" not in record


@pytest.mark.parametrize("arch", ["dual_lstm_classifier", "dual_supervised_lstm_classifier"])
def test_labels_have_no_bleu(reviews, tmp_path, arch):
    words = [reviews / "bin", "--task", "dual_translation", "-s", "text", "-t", "label", *SEARCH]
    words += ["--arch", f"{arch}_tiny", "--criterion", "dual_label_cross_entropy", *RUN]
    with pytest.raises(ValueError, match="--eval-bleu: .* single words.*error"):
        train(*words, "--save-dir", tmp_path, "--max-update", 2)
