"""Corpora of labelled texts: their forms, the validation set, and lines that are wrong."""

import gzip
from argparse import ArgumentParser

import pytest
from corpora import labelled

from fairseq_ext.tools import UsageError


@pytest.fixture
def copied(tmp_path):
    """Function (form, files, options) -> {name: lines} of what the command wrote."""

    def run(form, files, *options):
        for name, text in files.items():
            encoding = "latin-1" if name == "mr.txt" else "utf-8"
            (tmp_path / name).write_text(text, encoding=encoding)
        parser = ArgumentParser()
        labelled.add_arguments(parser)
        words = [str(tmp_path), "--form", form, "--output", str(tmp_path / "out"), *options]
        labelled.run(parser.parse_args(words))
        return {
            path.name: path.read_text(encoding="utf-8").splitlines()
            for path in (tmp_path / "out").iterdir()
        }

    return run


def test_mr_is_latin_1_and_has_its_own_split(copied, tmp_path):
    split = "0\ttrain\t1\n2\ttest\t1\n1\ttrain\t0\n"
    files = copied("mr", {"mr.txt": "Good  film .\nbad\nclichéd\n", "mr.split.txt": split})
    assert (files["test.text"], files["test.label"]) == (["clichéd"], ["pos"])
    both = [*zip(files["train.text"], files["train.label"])]
    both += zip(files["valid.text"], files["valid.label"])
    assert sorted(both) == [("bad", "neg"), ("good film .", "pos")]
    (tmp_path / "mr.txt.gz").write_bytes(gzip.compress((tmp_path / "mr.txt").read_bytes()))
    (tmp_path / "mr.txt").unlink()
    assert copied("mr", {}) == files


def test_lines_of_label_and_text(copied):
    """The last line may lack its end; a text without a word is left out."""
    train = "".join(f"earn\tA {n}\n" for n in range(57)) + "acq\t\n"
    files = copied("tab", {"train.txt": train, "test.txt": "acq\tx"})
    assert (files["test.text"], files["test.label"]) == (["x"], ["acq"])
    assert len(files["valid.text"]) == 5 and len(files["train.text"]) == 52
    assert sorted(files["train.text"] + files["valid.text"]) == sorted(f"a {n}" for n in range(57))
    assert copied("tab", {}, "--seed", "2")["valid.text"] != files["valid.text"]
    assert len(copied("tab", {}, "--valid", "3")["valid.text"]) == 19


@pytest.mark.parametrize(
    "form, files, message",
    [
        ("mr", {"mr.txt": "a\n", "mr.split.txt": "0\ttrain\t1\n1x\ttest\t1\n"}, "mr.split.txt, l"
         "ine 2: not NUMBER train|test 0|1"),
        ("mr", {"mr.txt": "a\n", "mr.split.txt": "²\ttrain\t1\n"}, "mr.split.txt, line 1: not NUM"),
        ("mr", {"mr.txt": "a\nb\n", "mr.split.txt": "0\ttrain\t1\n1\ttrain\t1\n"}, "no test texts"),
        ("mr", {"mr.txt": "a\nb\n", "mr.split.txt": "0\ttrain\t1\n1\ttrain\t0\n0\ttest\t1\n"},
         "mr.split.txt, line 3: text 0 has a split already, in line 1"),
        ("tab", {"train.txt": "earn\tx\n", "test.txt": "earn x\n"}, "test.txt, line 1: not LABEL"),
        ("tab", {"train.txt": "earn\tx\n\tgood\n", "test.txt": "earn\tx\n"}, "train.txt, line 2: n"
         "ot LABEL"),
        ("tab", {"train.txt": "earn\tx\n"}, "neither .*test.txt nor"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(copied, form, files, message, tmp_path):
    with pytest.raises(UsageError, match=message.replace("|", r"\|")):
        copied(form, files)
    assert not (tmp_path / "out").exists()


def test_a_damaged_file_is_named(copied, tmp_path):
    (tmp_path / "mr.txt.gz").write_bytes(gzip.compress(b"a\nb\n")[:-9])
    with pytest.raises(UsageError, match="cannot read .*mr.txt.gz"):
        copied("mr", {"mr.split.txt": "0\ttrain\t1\n"})


@pytest.mark.parametrize("share", ["0", "-1", "1"])
def test_a_share_that_is_none_is_refused(copied, share):
    with pytest.raises(UsageError, match=f"--valid {share}: allowed: 2 or more"):
        copied("tab", {}, "--valid", share)
