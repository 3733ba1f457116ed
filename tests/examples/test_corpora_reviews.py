"""Film reviews: tokens, labels, a split that is always the same, and archives that are none."""

import io
import random
import tarfile
from argparse import ArgumentParser

import pytest
from corpora import reviews

from fairseq_ext.tools import UsageError


def write_archive(path, texts):
    """texts: {name in the archive: text}."""
    with tarfile.open(path, "w:gz") as archive:
        for name, text in texts.items():
            content = text.encode("utf-8")
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


def random_reviews(count, seed=1):
    rng, words = random.Random(seed), "the film was a plot so it and fine poor".split()
    return {
        f"aclImdb/{split}/{label}/{number}_7.txt": " ".join(rng.choices(words, k=12))
        for split in ("train", "test")
        for label in ("pos", "neg")
        for number in range(count)
    }


def run(archive, folder, *words):
    """Run the command; {file: its lines}."""
    parser = ArgumentParser()
    reviews.add_arguments(parser)
    reviews.run(parser.parse_args([str(archive), "--output", str(folder), *map(str, words)]))
    return {path.name: path.read_text("utf-8").splitlines() for path in folder.iterdir()}


@pytest.mark.parametrize(
    "review, count, line",
    [
        ("It's GOOD!<br /><br />A 10/10.", 0, "it's good ! a 10 / 10 ."),
        ("It's good, isn't it?", 3, "it's good ,"),
        ("«Été» _so-so_", 0, "« été » _ so - so _"),
    ],
)
def test_tokens(review, count, line):
    assert reviews.tokens(review, count) == line


def test_reviews_and_labels_are_aligned_and_complete(tmp_path, capsys):
    texts = random_reviews(10)
    archive = write_archive(tmp_path / "a.tar.gz", {**texts, "aclImdb/train/unsup/0_0.txt": "x"})
    files = run(archive, tmp_path / "out", "--valid", 5, "--words", 4)
    assert files == run(archive, tmp_path / "again", "--valid", 5, "--words", 4)
    assert "valid: 5 reviews, 20 words" in capsys.readouterr().out
    pairs = {
        split: sorted(zip(files[f"{split}.label"], files[f"{split}.text"]))
        for split in ("train", "valid", "test")
    }
    assert [len(pairs[split]) for split in pairs] == [15, 5, 20]
    for split, both in {"train": ("train", "valid"), "test": ("test",)}.items():
        expected = [
            (name.split("/")[2], " ".join(text.split()[:4]))
            for name, text in texts.items()
            if name.split("/")[1] == split
        ]
        assert sorted(pair for part in both for pair in pairs[part]) == sorted(expected)


@pytest.mark.parametrize(
    "texts, valid, message",
    [
        ({"aclImdb/train/pos/0_9.txt": "<br />"}, 1, "train/pos/0_9.txt has no words"),
        ({"aclImdb/train/pos/0_9.txt": "fine"}, 1, "has no test/pos"),
        (random_reviews(2), 4, "--valid 4: allowed: 1 to 3"),
    ],
)
def test_what_cannot_be_used_is_named(tmp_path, texts, valid, message):
    with pytest.raises(UsageError, match=message):
        run(write_archive(tmp_path / "a.tar.gz", texts), tmp_path / "out", "--valid", valid)


@pytest.mark.parametrize("place", [0.5, 1], ids=["within", "checksum"])
def test_a_damaged_archive_is_named(tmp_path, place):
    """tarfile stops before the checksum of gzip, which alone tells of letters that changed."""
    archive = write_archive(tmp_path / "a.tar.gz", random_reviews(40))
    content = bytearray(archive.read_bytes())
    content[int(place * (len(content) - 8))] ^= 0x55
    archive.write_bytes(content)
    with pytest.raises(UsageError, match=r"a\.tar\.gz: "):
        run(archive, tmp_path / "out", "--valid", 1)
    assert not (tmp_path / "out").exists()


def test_what_is_no_archive_is_named(tmp_path):
    (tmp_path / "a.tar.gz").write_text("nothing", encoding="utf-8")
    with pytest.raises(UsageError, match="a.tar.gz"):
        run(tmp_path / "a.tar.gz", tmp_path / "out", "--valid", 1)
