"""Sentence pairs from a tab-separated file: no sentence is in two parts."""

import gzip
import itertools
import zipfile
from argparse import ArgumentParser, Namespace
from pathlib import Path

import pytest
from corpora import tab_separated

from fairseq_ext.tools import UsageError


def arguments(*words: str) -> Namespace:
    parser = ArgumentParser()
    tab_separated.add_arguments(parser)
    return parser.parse_args(words)


def prepare(tmp_path: Path, path: Path, *more: str) -> dict[str, list[tuple[str, str]]]:
    output = tmp_path / "out"
    words = ["--file", str(path), "--languages", "en", "de", "--output", str(output), *more]
    tab_separated.run(arguments(*words))
    return {
        split: list(zip(*((output / f"{split}.{side}").read_text().splitlines() for side in SIDES)))
        for split in ("train", "valid", "test")
    }


SIDES = ("en", "de")
TEXT = "".join(f"line {n}\tZeile {n}\tby somebody\n" for n in range(20))


def test_groups_connect_through_other_pairs() -> None:
    pairs = [("a", "x"), ("b", "y"), ("c", "y"), ("c", "x"), ("d", "z"), ("x", "d")]
    # a-x and b-y are connected by c; the sides are not mixed up: d and x of the last are others
    assert tab_separated.one_of_each_group(pairs) == [("a", "x"), ("d", "z"), ("x", "d")]


@pytest.mark.parametrize("packed", [False, True])
def test_parts_share_no_sentence(tmp_path: Path, packed: bool) -> None:
    path = tmp_path / "text.tsv"
    path.write_text(TEXT + "line 3\tSatz 3\n" + "line 30\tZeile 4\n" + "\tnothing\n")
    if packed:
        with zipfile.ZipFile(tmp_path / "text.zip", "w") as archive:
            archive.write(path, "text.tsv")
        path = tmp_path / "text.zip"
    splits = prepare(tmp_path, path, "--valid", "3", "--test", "4")
    assert {name: len(pairs) for name, pairs in splits.items()} == {
        "train": 13, "valid": 3, "test": 4,
    }  # fmt: skip
    for side in (0, 1):
        sentences = [pair[side] for pair in itertools.chain(*splits.values())]
        assert len(set(sentences)) == len(sentences) == 20


def test_bad_input_is_named(tmp_path: Path) -> None:
    path = tmp_path / "text.tsv"
    path.write_text(TEXT + "no tab\n")
    with pytest.raises(UsageError, match=r"text.tsv, line 21: 'no tab' has no tab"):
        prepare(tmp_path, path)
    path.write_text(TEXT)
    with pytest.raises(UsageError, match=r"--valid 1000 --test 1000: .* has 20 pairs"):
        prepare(tmp_path, path)
    (tmp_path / "text.zip").write_bytes(b"PK nothing")
    with pytest.raises(UsageError, match=r"cannot read .*text.zip"):
        prepare(tmp_path, tmp_path / "text.zip")


def test_files_that_end_early_and_a_language_for_both_columns(tmp_path: Path) -> None:
    path = tmp_path / "text.tsv.gz"
    path.write_bytes(gzip.compress(TEXT.encode())[:-12])
    with pytest.raises(UsageError, match=r"cannot read .*text.tsv.gz"):
        prepare(tmp_path, path)
    with pytest.raises(UsageError, match="--languages de de: allowed: 1 or more, each once"):
        prepare(tmp_path, path, "--languages", "de", "de")


def test_the_first_file_of_an_archive_is_read(tmp_path: Path) -> None:
    path = tmp_path / "text.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("folder/", "")
    with pytest.raises(UsageError, match=r"text\.zip: there is no file in it"):
        prepare(tmp_path, path)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("folder/text.tsv", TEXT)
        archive.writestr("folder/other.tsv", "")
    splits = prepare(tmp_path, path, "--valid", "3", "--test", "4")
    assert sum(map(len, splits.values())) == 20


@pytest.mark.parametrize(
    "place, value, message", [(0, 1, "encrypted"), (2, 99, "compression method is not supported")]
)
def test_an_archive_that_is_not_supported_is_named(
    tmp_path: Path, place: int, value: int, message: str
) -> None:
    path = tmp_path / "text.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("text.tsv", TEXT)
    content = bytearray(path.read_bytes())
    for header, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.index(header) + flags + place] = value
    path.write_bytes(content)
    with pytest.raises(UsageError, match=rf"cannot read .*text\.zip: .*{message}"):
        prepare(tmp_path, path)


def test_text_that_is_not_utf_8_and_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "text.tsv"
    path.write_text("\ufeff" + TEXT, encoding="utf-8")
    splits = prepare(tmp_path, path, "--valid", "3", "--test", "4")
    assert ("line 0", "Zeile 0") in itertools.chain(*splits.values())
    path.write_bytes(TEXT.encode() + b"\xff\t\n")
    with pytest.raises(UsageError, match=r"text\.tsv, line 21: not UTF-8"):
        prepare(tmp_path, path)


def test_a_carriage_return_within_a_line_is_a_blank(tmp_path: Path) -> None:
    path = tmp_path / "text.tsv"
    path.write_bytes(TEXT.replace("line", "a\rline").encode())
    prepare(tmp_path, path, "--valid", "3", "--test", "4")
    assert b"\r" not in (tmp_path / "out" / "train.en").read_bytes()


def test_training_has_no_sentence_of_a_test_in_other_white_space(tmp_path, capsys) -> None:
    """As French has before its question marks."""
    lines = [
        f"How{form} {n}?\tÇa va {n}{blank}?\n"
        for n in range(20)
        for form, blank in (("", " "), (" is", "\u00a0"))
    ]
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(lines), encoding="utf-8")
    splits = prepare(tmp_path, path, "--valid", "4", "--test", "4")
    questions = {
        split: {target.replace("\u00a0", " ") for _, target in pairs}
        for split, pairs in splits.items()
    }
    assert not questions["train"] & (questions["valid"] | questions["test"])
    left_out = 40 - 8 - len(splits["train"])
    assert left_out and f"left out of train: {left_out} pairs" in capsys.readouterr().out
