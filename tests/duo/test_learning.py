"""A task that must be learnt: sentences come out turned round, with one set of vectors frozen."""

import random

import pytest
from common import inprocess

WORDS = 12
SIZES = {"train": 1500, "valid": 50, "test": 100}
TASK = ["--task", "translation", "-s", "xx", "-t", "yy"]


@pytest.fixture(scope="module")
def reversal(run, tmp_path_factory):
    """Folder of binarised pairs, yy being xx from back to front with letters of its own."""
    folder = tmp_path_factory.mktemp("reversal")
    rng = random.Random(4)
    command = ["fairseq-preprocess", "-s", "xx", "-t", "yy"]
    for split, size in SIZES.items():
        rows = [[rng.randrange(WORDS) for _ in range(rng.randint(1, 6))] for _ in range(size)]
        for lang, order in (("xx", 1), ("yy", -1)):
            lines = (" ".join(f"{lang}{word}" for word in row[::order]) for row in rows)
            text = "".join(line + "\n" for line in lines)
            (folder / f"{split}.{lang}").write_text(text, encoding="utf-8")
        command += [f"--{split}pref", folder / split]
    run(*command, "--destdir", folder / "bin")
    rows = [[rng.gauss(0, 1) for _ in range(10)] for _ in range(WORDS)]
    lines = (f"xx{word} {' '.join(map(str, row))}\n" for word, row in enumerate(rows))
    (folder / "xx.vec").write_text(f"{WORDS} 10\n" + "".join(lines), encoding="utf-8")
    return folder


@pytest.mark.slow
def test_reversal_is_learnt(reversal, tmp_path):
    data = reversal / "bin"
    inprocess.train(
        data,
        *[*TASK, "--arch", "duo_transformer_tiny", "--dropout", 0],
        *["--embed-path-p", reversal / "xx.vec", "--freeze-embeddings", "--duo-norm", "all"],
        *["--optimizer", "adam", "--lr", 0.002, "--lr-scheduler", "polynomial_decay"],
        *["--warmup-updates", 100, "--total-num-update", 1000, "--max-update", 1000],
        *["--criterion", "chunked_label_smoothed_cross_entropy", "--label-smoothing", 0.1],
        *["--clip-norm", 1, "--batch-size", 64, "--no-progress-bar", "--no-epoch-checkpoints"],
        *["--save-dir", tmp_path, "--seed", 1],
    )
    output = inprocess.generate(
        data,
        *[*TASK, "--beam", 4, "--max-len-b", 12, "--batch-size", 50],
        *["--path", tmp_path / "checkpoint_last.pt"],
    )
    hypotheses, references = inprocess.hypotheses(output), inprocess.references(output)
    right = sum(hypotheses[number][0][1] == text for number, text in references.items())
    assert len(references) == SIZES["test"] and right >= 90
