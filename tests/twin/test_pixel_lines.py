"""`fairseq-ext pixel-lines` and the idx format."""

import gzip

import numpy as np
import pytest
from twin.test_idx import idx

from fairseq_ext import __main__ as command


def call(*words):
    return command.main(["pixel-lines", *map(str, words)])


@pytest.fixture
def images():
    return np.array([[[0, 127, 128], [255, 1, 254]], [[255, 0, 0], [0, 0, 129]]])


def test_threshold_row_by_row(tmp_path, images, capsys):
    (tmp_path / "a").write_bytes(idx(images))
    (tmp_path / "a.gz").write_bytes(gzip.compress(idx(images)))
    for name in ("a", "a.gz"):
        assert call(tmp_path / name, "--output", tmp_path / "out", "--force") == 0
        assert (tmp_path / "out").read_text() == "0 0 1 1 0 1\n1 0 0 0 0 1\n"
    assert "2 lines of 6 pixels, 41.7% of them 1" in capsys.readouterr().out
    assert call(tmp_path / "a", "--output", tmp_path / "out", "--threshold", 1, "--force") == 0
    assert (tmp_path / "out").read_text() == "0 0 0 1 0 0\n1 0 0 0 0 0\n"


def test_the_lines_of_before_are_replaced_with_force_alone(tmp_path, images, capsys):
    (tmp_path / "a").write_bytes(idx(images))
    output = tmp_path / "out"
    output.write_text("mine")
    assert call(tmp_path / "a", "--output", output) == 2 and output.read_text() == "mine"
    assert f"--output {output} exists; give another name, or --force" in capsys.readouterr().err
    assert call(tmp_path / "a", "--output", output, "--force") == 0
    assert output.read_text().startswith("0 0 1")


def test_sampling_has_the_intensities_as_probabilities(tmp_path):
    images = np.tile(np.array([0, 51, 204, 255], dtype=np.uint8), (6000, 1, 1))
    (tmp_path / "a").write_bytes(idx(images))
    texts = {}
    for seed in (1, 1, 2):
        call(tmp_path / "a", "--output", tmp_path / "out", "--sample", seed, "--force")
        text = (tmp_path / "out").read_text()
        assert texts.setdefault(seed, text) == text
    assert texts[1] != texts[2]
    rows = np.array([line.split() for line in texts[1].splitlines()]).astype(int)
    # four standard deviations of a mean over 6,000 draws
    assert rows.mean(axis=0) == pytest.approx([0, 0.2, 0.8, 1], abs=4 * 0.4 / 6000**0.5)
    assert rows[:, 0].max() == 0 and rows[:, 3].min() == 1


def test_what_cannot_be_read_is_named(tmp_path, capsys):
    (tmp_path / "plain.gz").write_bytes(b"not packed")
    (tmp_path / "cut.gz").write_bytes(gzip.compress(idx(np.zeros((3, 3, 3))))[:-9])
    for name, message in (
        ("plain.gz", "plain.gz cannot be read"),
        ("cut.gz", "cut.gz cannot be read"),
        ("none.gz", "there is no"),
    ):
        assert call(tmp_path / name, "--output", tmp_path / "out") == 2
        assert message in capsys.readouterr().err
    (tmp_path / "empty").write_bytes(idx(np.zeros((0, 28, 28))))
    assert call(tmp_path / "empty", "--output", tmp_path / "out") == 2
    assert "empty holds no image" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "option, value",
    [
        ("--threshold", 0),
        ("--threshold", 1.5),
        ("--sample", -1),
        ("--sample", 1.5),
        ("--sample", "x"),
    ],
)
def test_bad_values_are_named(tmp_path, images, capsys, option, value):
    (tmp_path / "a").write_bytes(idx(images))
    with pytest.raises(SystemExit):
        call(tmp_path / "a", "--output", tmp_path / "out", option, value)
    assert f"{option}: {value}; allowed: " in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_the_images_themselves_are_not_replaced(tmp_path, capsys):
    path = str(tmp_path / "images")
    assert command.main(["pixel-lines", path, "--output", path]) == 2
    assert "is read as well and would be lost" in capsys.readouterr().err
