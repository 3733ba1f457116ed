"""Strips of digits: what is on them, what is said of them, and their features."""

import gzip
import random
import struct
from argparse import ArgumentParser
from collections import Counter

import numpy as np
import pytest
from corpora import captions

from fairseq_ext.tools import UsageError


def write_idx(path, array):
    header = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    path.write_bytes(gzip.compress(header + array.astype(np.uint8).tobytes()))


def write_mnist(folder, train=60, test=30):
    """Images whose pixels are all their label times 20."""
    folder.mkdir(parents=True)
    for stem, size in (("train", train), ("t10k", test)):
        labels = np.arange(size) % 10
        images = np.broadcast_to(20 * labels[:, None, None], (size, 28, 28))
        write_idx(folder / f"{stem}-images-idx3-ubyte.gz", images)
        write_idx(folder / f"{stem}-labels-idx1-ubyte.gz", labels)
    return folder


@pytest.fixture
def mnist(tmp_path):
    return write_mnist(tmp_path / "mnist")


def run(mnist, folder, *words):
    parser = ArgumentParser()
    captions.add_arguments(parser)
    kinds = ("images-idx3-ubyte", "labels-idx1-ubyte")
    for option, stem in (("--train", "train"), ("--test", "t10k")):
        words += (option, *(mnist / f"{stem}-{kind}" for kind in kinds))
    words = ["--strips", "30", "6", "5", "--output", str(folder), *map(str, words)]
    captions.run(parser.parse_args(words))


def lines(path):
    return path.read_text(encoding="utf-8").splitlines()


def test_captions_of_digits():
    assert captions.captions_of([3]) == [
        "from the left : three",
        "from the right : three",
        "a three",
    ]
    assert captions.captions_of([6, 1, 6, 0]) == [
        "from the left : six , one , six and zero",
        "from the right : zero , six , one and six",
        "two sixes , a zero and a one",
    ]


def test_strips_show_their_digits():
    labels = np.arange(10)
    images = np.broadcast_to(20 * labels[:, None, None], (10, 28, 28))
    rng, counts = random.Random(0), Counter()
    for _ in range(200):
        canvas, digits = captions.draw_strip(images, labels, rng)
        assert canvas.shape == (28, 112) and canvas.max() <= 1
        assert set(np.unique(canvas)) <= {20 * digit / 255 for digit in digits} | {0.0}
        counts[len(digits)] += 1
    assert set(counts) == {1, 2, 3, 4}


def test_features_of_strips():
    canvas = np.random.default_rng(0).random((28, 112))
    grid, whole = captions.pixels(canvas, "grid"), captions.pixels(canvas, "whole")
    assert grid.shape == (13, 14 * 8) and whole.shape == (1, 14 * 56)
    halved = whole.reshape(14, 56)
    assert halved[3, 5] == pytest.approx(canvas[6:8, 10:12].mean())
    np.testing.assert_array_equal(grid[2], halved[:, 8:16].ravel())
    vectors = captions.Components(grid, 0).features(grid, "grid")
    np.testing.assert_allclose(vectors[:, :112], grid, rtol=1e-6)
    np.testing.assert_array_equal(vectors[:, 112:], np.eye(13))


def test_components_hold_most_of_the_variance():
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=(500, 2)) * [5, 3]
    rows = hidden @ rng.normal(size=(2, 6)) + 0.01 * rng.normal(size=(500, 6)) + 7
    vectors = captions.Components(rows, 2).features(rows, "whole")
    assert vectors.mean(axis=0) == pytest.approx([0, 0], abs=1e-5)
    assert vectors.var(axis=0, ddof=1).mean() == pytest.approx(1, rel=1e-5)
    back = np.linalg.lstsq(vectors, rows - rows.mean(axis=0), rcond=None)[0]
    assert np.abs(vectors @ back - (rows - rows.mean(axis=0))).max() < 0.1


def test_what_is_written(mnist, tmp_path, capsys):
    out = tmp_path / "out"
    run(mnist, out, "--features", "grid", "--components", 3)
    assert "train: 30 strips, 60 captions" in capsys.readouterr().out
    names = lines(out / "bin" / "train.features")
    assert len(names) == len(lines(out / "text" / "train")) == 60 and len(set(names)) == 30
    assert np.load(out / "bin" / names[0]).shape == (13, 3 + 13)
    assert len(lines(out / "bin" / "test.features")) == 5
    for line, text in zip(lines(out / "raw" / "test.ref"), lines(out / "text" / "test")):
        assert text in line.split("\t") and len(line.split("\t")) == 3


def test_what_was_written_is_written_again(mnist, tmp_path):
    out = tmp_path / "out"
    run(mnist, out, "--features", "whole")
    before = lines(out / "text" / "train")
    for written in (out / "text" / "train", out / "bin" / "train.features"):
        written.write_text("an older line\n", encoding="utf-8")
    run(mnist, out, "--features", "whole")
    assert lines(out / "text" / "train") == before
    assert len(lines(out / "bin" / "train.features")) == len(before)


def test_an_interruption_leaves_features_as_they_were(mnist, tmp_path, monkeypatch):
    out = tmp_path / "out"
    run(mnist, out, "--features", "whole")
    features = out / "bin" / "features"
    before = {path.name: path.read_bytes() for path in features.iterdir()}

    def interrupted(path, vectors):
        path.write_bytes(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "save", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(mnist, out, "--features", "whole")
    assert {path.name: path.read_bytes() for path in features.iterdir()} == before


def test_faults_are_named(mnist, tmp_path):
    with pytest.raises(UsageError, match="--strips 0 1 1: allowed: 1 or more of each"):
        run(mnist, tmp_path / "out", "--features", "grid", "--strips", "0", "1", "1")
    with pytest.raises(UsageError, match="--components 112: allowed: 0 to 111"):
        run(mnist, tmp_path / "out", "--features", "grid", "--components", 112)
    (mnist / "t10k-labels-idx1-ubyte.gz").unlink()
    with pytest.raises(UsageError, match="there is neither .*t10k-labels-idx1-ubyte nor .*gz"):
        run(mnist, tmp_path / "out", "--features", "grid")
    write_idx(mnist / "t10k-labels-idx1-ubyte.gz", np.arange(9))
    with pytest.raises(UsageError, match="t10k-labels.* has not as many labels as .*t10k-images"):
        run(mnist, tmp_path / "out", "--features", "grid")
