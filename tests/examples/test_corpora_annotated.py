"""Entities, trees and graphs as parallel text: splits, long targets, faulty files."""

import gzip
import zipfile
from argparse import ArgumentParser

import pytest
from corpora import annotated, apply_subwords, draw

from fairseq_ext.tools import UsageError

ROWS = "EU NNP I-NP I-ORG\nsays VBZ I-VP O\n\n"


def graphs(numbers):
    """A graph for each number, in a file of an AMR bank."""
    return "".join(f"# ::id a.{n}\n# ::snt It is {n} .\n(i / it :quant {n})\n\n" for n in numbers)


def write_annotated(folder, write):
    """Small files with the names that examples/routed knows them by."""
    for name in ("eng.train", "eng.testa", "eng.testb"):
        path = folder / "conll2003" / f"{name}.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress((ROWS * 30).encode()))
    for name, numbers in (("", range(20)), ("-training", range(14)), ("-test", range(17, 20))):
        path = folder / "amr_little_prince" / f"amr-bank-struct-v1.6{name}.txt"
        write(path, graphs(numbers).splitlines())
    (folder / "wsj_sample").mkdir()
    with zipfile.ZipFile(folder / "wsj_sample" / "treebank.zip", "w") as archive:
        for name, numbers in zip("abcd", (range(7), range(7, 17), range(17, 19), range(19, 20))):
            trees = "".join(f"( (S (NP (NN w{n}))) )\n" for n in numbers)
            archive.writestr(f"{name}.mrg", trees)
    return folder


def run(module, *words):
    parser = ArgumentParser()
    module.add_arguments(parser)
    module.run(parser.parse_args([str(word) for word in words]))


@pytest.fixture
def linearised(tmp_path, write):
    """Function (format, options) -> {file: lines}; options name files of `raw`."""
    raw = write_annotated(tmp_path / "raw", write)

    def make(name, *words):
        words = [raw / word if "/" in str(word) else word for word in words]
        run(annotated, name, "--source", "en", "--output", tmp_path / name, *words)
        paths = (tmp_path / name).iterdir()
        return {path.name: path.read_text("utf-8").splitlines() for path in paths}

    return make


GIVEN = [
    *("--train", "conll2003/eng.train", "--valid", "conll2003/eng.testa"),
    *("--test", "conll2003/eng.testb"),
]
BANK = "amr_little_prince/amr-bank-struct-v1.6"


def sizes(files):
    return {split: len(files[f"{split}.en"]) for split in ("train", "valid", "test")}


def test_splits_with_files_of_their_own(linearised):
    files = linearised("ner", *GIVEN, "--valid-lines", 20)
    assert sizes(files) == {"train": 30, "valid": 20, "test": 30}
    assert (files["train.en"][0], files["train.ner"][0]) == ("EU says", "B-ORG O")


def test_whole_texts_are_shared_out(linearised):
    files = linearised("tree", "--whole", "wsj_sample/treebank.zip")
    assert sizes(files) == {"train": 17, "valid": 2, "test": 1}
    assert files["test.en"] == ["w19"]
    assert len({line for split in sizes(files) for line in files[f"{split}.en"]}) == 20


def test_the_rest_of_the_graphs_validates(linearised):
    files = linearised(
        "amr", "--whole", f"{BANK}.txt", "--train", f"{BANK}-training.txt", "--test",
        f"{BANK}-test.txt",
    )  # fmt: skip
    assert sizes(files) == {"train": 14, "valid": 3, "test": 3}
    assert files["valid.en"] == [f"It is {n} ." for n in (14, 15, 16)]


def test_graphs_that_share_an_identifier_stay(linearised, tmp_path, write):
    """As with --train, --valid and --test; the last one replaced those before it."""
    again = ["# ::id a.1", "# ::snt It is 1 again .", "(i / it :quant 1)"]
    whole = write(tmp_path / "raw" / "whole", [*graphs(range(20)).splitlines(), *again])
    train = write(tmp_path / "raw" / "train", [*graphs(range(14)).splitlines(), *again])
    files = linearised("amr", "--whole", whole, "--train", train, "--test", f"{BANK}-test.txt")
    assert sizes(files) == {"train": 15, "valid": 3, "test": 3}
    assert files["train.en"][1] == "It is 1 ." and files["train.en"][-1] == "It is 1 again ."
    valid = write(tmp_path / "raw" / "valid", graphs([2]).splitlines())
    files = linearised("amr", "--whole", whole, "--valid", valid, "--test", f"{BANK}-test.txt")
    assert [line for line in files["train.en"] if " 1 " in line] == ["It is 1 .", "It is 1 again ."]


def test_long_targets_leave_training_only(linearised, capsys, tmp_path, write):
    mixed = write(tmp_path / "raw" / "mixed", [*ROWS.splitlines(), "Yes UH I-INTJ O"])
    files = linearised("ner", *GIVEN[2:], "--train", mixed, "--longest", 1)
    assert sizes(files) == {"train": 1, "valid": 30, "test": 30}
    assert "train: 1 longer targets left out" in capsys.readouterr().out


def test_a_set_without_a_sentence_is_named(linearised, tmp_path, write):
    empty = write(tmp_path / "raw" / "empty", [])
    with pytest.raises(UsageError, match=r"\S*empty: no sentence is left for train"):
        linearised("tree", "--whole", empty)
    with pytest.raises(UsageError, match="no sentence of at most --longest 1 symbols is left for"):
        linearised("ner", *GIVEN, "--longest", 1)
    assert not (tmp_path / "ner").exists()


def test_what_cannot_be_used_is_named(linearised, tmp_path, write):
    with pytest.raises(UsageError, match="there is neither .*none nor .*none.gz"):
        linearised("tree", "--whole", "wsj_sample/none")
    with pytest.raises(UsageError, match="tree with --whole --train; allowed: --whole alone"):
        linearised("tree", "--whole", "wsj_sample/treebank.zip", *GIVEN[:2])
    with pytest.raises(UsageError, match="ner with no file; allowed"):
        linearised("ner")
    write(tmp_path / "raw" / "bad", ["a O", "b"])
    with pytest.raises(UsageError, match="bad, line 2: row 'b'"):
        linearised("ner", *GIVEN[2:], "--train", tmp_path / "raw" / "bad")
    write(tmp_path / "raw" / "bad", ["# ::snt It is 1 .", "(i / it :quant 1)"])
    with pytest.raises(UsageError, match="bad: no line '# ::id NAME' above the graph of: It is 1"):
        linearised("amr", "--whole", f"{BANK}.txt", "--train", f"{BANK}-training.txt", "--test",
                   tmp_path / "raw" / "bad")  # fmt: skip
    for odd in (("--longest", 0), ("--valid-lines", -1)):
        with pytest.raises(UsageError, match=f"{odd[0]} {odd[1]}: allowed: 1 or more"):
            linearised("ner", *GIVEN, *odd)
    with pytest.raises(UsageError, match="--source ner: the ending of the targets"):
        linearised("ner", *GIVEN, "--source", "ner")


def test_smaller_draws_are_parts_of_larger_ones(tmp_path, write):
    texts = [write(tmp_path / f"train.{side}", [f"{side} {n}" for n in range(100)])
             for side in ("de", "en")]  # fmt: skip
    drawn = {}
    for count in (10, 40, 100):
        run(draw, *texts, "--lines", count, "--output", tmp_path / "out")
        sides = [(tmp_path / "out" / text.name).read_text("utf-8").split() for text in texts]
        assert sides[0][1::2] == sides[1][1::2]
        drawn[count] = list(map(int, sides[0][1::2]))
        assert len(drawn[count]) == count and drawn[count] == sorted(drawn[count])
    assert set(drawn[10]) < set(drawn[40]) and drawn[100] == list(range(100))
    with pytest.raises(UsageError, match="--lines 101: .*train.de has 100"):
        run(draw, *texts, "--lines", 101, "--output", tmp_path / "out")


def test_what_is_made_of_packed_texts_has_plain_names(tmp_path):
    """A plain text that is called .gz could not be read again."""
    text = tmp_path / "train.de.gz"
    text.write_bytes(gzip.compress(b"a\nb\n"))
    run(draw, text, "--lines", 2, "--output", tmp_path / "out")
    assert (tmp_path / "out" / "train.de").read_text(encoding="utf-8") == "a\nb\n"
    (tmp_path / "train.de").write_text("a\n", encoding="utf-8")
    for module, option in ((draw, ("--lines", 1)), (apply_subwords, ("--model", "none"))):
        with pytest.raises(UsageError, match="out/train.de would be written twice"):
            run(module, text, tmp_path / "train.de", *option, "--output", tmp_path / "out")


def test_texts_of_one_name_do_not_replace_each_other(tmp_path, write):
    texts = [write(tmp_path / side / "train", [side]) for side in ("de", "en")]
    for module, option in ((draw, ("--lines", 1)), (apply_subwords, ("--model", "none"))):
        with pytest.raises(UsageError, match="out/train would be written twice"):
            run(module, *texts, *option, "--output", tmp_path / "out")
        with pytest.raises(UsageError, match="de/train would be replaced by what is made of it"):
            run(module, texts[0], *option, "--output", tmp_path / "de")
