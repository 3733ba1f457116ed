"""A task that must be learnt: sentences come out turned round, in both directions."""

import random

import pytest
from common import inprocess

WORDS = 12
SIZES = {"train": 1500, "valid": 50, "test": 100}


@pytest.fixture(scope="module")
def reversal(run, tmp_path_factory):
    """Folder of binarised pairs: yy is xx from back to front, with letters of its own."""
    folder = tmp_path_factory.mktemp("reversal")
    rng = random.Random(4)
    command = ["fairseq-preprocess", "-s", "xx", "-t", "yy", "--joined-dictionary"]
    for split, size in SIZES.items():
        lines = {"xx": [], "yy": []}
        for _ in range(size):
            words = [rng.randrange(WORDS) for _ in range(rng.randint(1, 6))]
            lines["xx"].append(" ".join(f"a{word}" for word in words))
            lines["yy"].append(" ".join(f"b{word}" for word in reversed(words)))
        for lang, text in lines.items():
            path = folder / f"{split}.{lang}"
            path.write_text("".join(line + "\n" for line in text), encoding="utf-8")
        command += [f"--{split}pref", folder / split]
    run(*command, "--destdir", folder / "bin")
    return folder / "bin"


@pytest.mark.slow
@pytest.mark.parametrize("norm", [[], ["--normalize-before"]], ids=["post-norm", "pre-norm"])
def test_reversal_is_learnt_in_both_directions(reversal, tmp_path, norm):
    task = ["--task", "dual_translation"]
    records = inprocess.train(
        reversal,
        *[*task, "-s", "xx", "-t", "yy", "--arch", "dual_transformer_tiny", *norm],
        *["--share-all-embeddings", "--dropout", 0, "--optimizer", "adam", "--lr", 0.002],
        *["--lr-scheduler", "inverse_sqrt", "--warmup-updates", 200, "--clip-norm", 1],
        *["--criterion", "chunked_label_smoothed_cross_entropy", "--label-smoothing", 0.1],
        *["--batch-size", 64, "--max-update", 1500, "--num-workers", 0, "--no-progress-bar"],
        *["--save-dir", tmp_path, "--no-epoch-checkpoints", "--seed", 1],
    )
    assert any("valid_loss" in record for record in records)
    for source, target in (("xx", "yy"), ("yy", "xx")):
        output = inprocess.generate(
            reversal,
            *[*task, "-s", source, "-t", target, "--beam", 4, "--max-len-b", 12],
            *["--path", tmp_path / "checkpoint_last.pt", "--batch-size", 50],
        )
        hypotheses = inprocess.hypotheses(output)
        references = inprocess.references(output)
        right = sum(hypotheses[number][0][1] == text for number, text in references.items())
        assert len(references) == SIZES["test"] and right >= 90
