"""`fairseq-ext linearise`: files in, two aligned files out, and the way back."""

import gzip
import re
import sys
import zipfile

import pytest

from fairseq_ext import __main__ as command
from fairseq_ext.routed import linearise as module

NER = "-DOCSTART- -X- O O\n\nEU NNP I-NP I-ORG\nsays VBZ I-VP O\n\nPeter NNP I-NP I-PER\n"
TREE = "( (S (NP-SBJ (NNP John) )\n    (VP (VBZ has) )))\n( (S (NN c)))\n"
AMR = "# release\n\n# ::snt He goes .\n(g / go-01\n   :ARG0 (h / he))\n\n# ::snt I .\n(i / i)\n"
TEXTS = {"ner": NER, "tree": TREE, "amr": AMR}
SOURCES = {"ner": "EU says\nPeter\n", "tree": "John has\nc\n", "amr": "He goes .\nI .\n"}
TARGETS = {
    "ner": "B-ORG O\nB-PER\n",
    "tree": "(S (NP NNP )NP (VP VBZ )VP )S\n(S NN )S\n",
    "amr": "( go :ARG0 he )\ni\n",
}
BAD = {
    "ner": ("says VBZ I-VP O", "says VBZ O", 4, "has 3 columns"),
    "tree": ("(VP (VBZ has) )))", "(VP (VBZ has) )", 1, "not a tree"),
    "amr": (":ARG0 (h / he))", ":ARG0 (h / he)", 5, "not a graph"),
}


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def call(*words):
    return command.main(["linearise", *map(str, words)])


def written(prefix):
    return [prefix.with_name(f"{prefix.name}.{side}").read_text() for side in ("src", "tgt")]


@pytest.mark.parametrize("ending", [".src", ".tgt"])
def test_the_files_of_before_are_replaced_with_force_alone(ending, tmp_path, capsys):
    source, present = write(tmp_path / "in", NER), write(tmp_path / f"out{ending}", "mine")
    words = ("ner", source, "--output", tmp_path / "out")
    assert call(*words) == 2 and present.read_text() == "mine"
    assert f"--output {present} exists; give another name, or --f" in capsys.readouterr().err
    assert call(*words, "--force") == 0 and present.read_text() != "mine"


@pytest.mark.parametrize("name", TEXTS)
def test_files_and_back(name, tmp_path, capsys):
    prefix = tmp_path / "out"
    assert call(name, write(tmp_path / "file", TEXTS[name]), "--output", prefix) == 0
    assert written(prefix) == [SOURCES[name], TARGETS[name]]
    assert "2 written, 0 skipped" in capsys.readouterr().out
    # what comes back reads as the same two files
    back, again = tmp_path / "back", tmp_path / "again"
    assert call(name, f"{prefix}.src", f"{prefix}.tgt", "--inverse", "--output", back) == 0
    assert call(name, back, "--output", again) == 0
    assert written(again) == written(prefix)


@pytest.mark.parametrize("name", TEXTS)
def test_faulty_items_stop_it_or_are_skipped(name, tmp_path, capsys):
    old, new, line, reason = BAD[name]
    path = write(tmp_path / "file", TEXTS[name].replace(old, new))
    assert call(name, path, "--output", tmp_path / "out") == 2
    assert re.search(f"file, line {line}: .*{reason}", capsys.readouterr().err)
    assert list(tmp_path.iterdir()) == [path]
    assert call(name, path, "--output", tmp_path / "out", "--skip-bad") == 0
    printed = capsys.readouterr()
    assert "1 written, 1 skipped" in printed.out and f"file, line {line}" in printed.err
    expected = [text.splitlines()[1] + "\n" for text in (SOURCES[name], TARGETS[name])]
    assert written(tmp_path / "out") == expected


@pytest.mark.parametrize("name, wrong", [("ner", "O"), ("tree", "(S NN )S"), ("amr", "( go")])
def test_faulty_predictions_stop_it_or_are_skipped(name, wrong, tmp_path, capsys):
    source = write(tmp_path / "src", SOURCES[name])
    target = write(tmp_path / "tgt", wrong + "\n" + TARGETS[name].splitlines()[1] + "\n")
    assert call(name, source, target, "--inverse", "--output", tmp_path / "out") == 2
    assert "tgt, line 1: " in capsys.readouterr().err and not (tmp_path / "out").exists()
    words = ("--inverse", "--skip-bad", "--output", tmp_path / "out")
    assert call(name, source, target, *words) == 0
    assert "1 written, 1 skipped" in capsys.readouterr().out


def test_several_files_packed_or_not(tmp_path):
    plain = write(tmp_path / "one", TREE)
    packed = tmp_path / "two.gz"
    packed.write_bytes(gzip.compress(b"(S (NN d))\n"))
    with zipfile.ZipFile(tmp_path / "three.zip", "w") as archive:
        archive.writestr("bank/b.mrg", "(S (NN f))")
        archive.writestr("bank/a.mrg", "(S (NN e))")
        archive.writestr("bank/README", "(no tree")
    files = (plain, packed, tmp_path / "three.zip")
    assert call("tree", *files, "--output", tmp_path / "out", "--leaves", "xx") == 0
    assert written(tmp_path / "out")[0] == "John has\nc\nd\ne\nf\n"


def test_members_of_archives_are_named(tmp_path, capsys):
    path = tmp_path / "bank.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.mrg", "\n(S (NN e)")
    assert call("tree", path, "--output", tmp_path / "out") == 2
    assert f"{path}:a.mrg, line 2: not a tree" in capsys.readouterr().err


@pytest.mark.parametrize(
    "name, content, message",
    [
        ("f.txt", b"a\n\xff O\n", "f.txt, line 2: not UTF-8"),
        ("f.gz", b"no gzip", "cannot read {path}: Not a gzipped file"),
        # header of a gzip file, then bytes that are no deflate stream
        ("f.gz", b"\x1f\x8b\x08" + bytes(7) + b"\xff" * 20, "cannot read {path}"),
        ("f.zip", b"no zip", "cannot read {path}"),
        ("f.txt", b"-DOCSTART- O\n", "f.txt: no sentence is left"),
        ("f.txt", b"\xef\xbb\xbf-DOCSTART- O\n", "f.txt: no sentence is left"),
        (None, b"", "cannot read {path}: No such file"),
    ],
)
def test_unreadable_files_are_named(name, content, message, tmp_path, capsys):
    path = tmp_path / (name or "none")
    if name:
        path.write_bytes(content)
    assert call("ner", path, "--output", tmp_path / "out") == 2
    assert message.format(path=path) in capsys.readouterr().err
    assert not (tmp_path / "out.src").exists()


def zip_with(path, method=0, encrypted=False):
    """A .zip of one text whose headers tell of another method of compression, or encryption."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x", "a O\n")
    content = bytearray(path.read_bytes())
    for header, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        start = content.index(header) + place
        content[start] |= encrypted
        content[start + 2] = method
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    "change, message",
    [
        ({"encrypted": True}, r"cannot read .*f\.zip: .*encrypted"),
        ({"method": 99}, r"cannot read .*f\.zip: .*compression method"),
    ],
)
def test_zips_that_are_not_supported_are_named(change, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        list(module.texts(zip_with(tmp_path / "f.zip", **change)))


def test_a_member_of_a_zip_may_have_no_name(tmp_path):
    with zipfile.ZipFile(tmp_path / "f.zip", "w") as archive:
        archive.writestr("folder/", "")
        archive.writestr(zipfile.ZipInfo(""), "a O\n")
    assert list(module.texts(tmp_path / "f.zip")) == [(f"{tmp_path / 'f.zip'}:", ["a O"])]


@pytest.mark.parametrize(
    "words, message",
    [
        (["ner", "a", "--senses"], "--senses is of amr, FORMAT is ner"),
        (["tree", "a", "--scheme", "iob1"], "--scheme is of ner, FORMAT is tree"),
        (["amr", "a", "b", "--inverse", "--senses"], "--senses does not go with --inverse"),
        (["ner", "a", "--inverse"], "--inverse: 1 FILEs; allowed: two"),
    ],
)
def test_wrong_usage_is_named(words, message, capsys):
    assert call(*words, "--output", "x") == 2
    assert message in capsys.readouterr().err


def test_files_of_different_length_are_named(tmp_path, capsys):
    files = write(tmp_path / "a", "x\ny\n"), write(tmp_path / "b", "O\n")
    assert call("ner", *files, "--inverse", "--output", tmp_path / "out") == 2
    assert re.search("a has 2 lines and .*b 1", capsys.readouterr().err)


def test_missing_libraries_are_named(tmp_path, monkeypatch, capsys):
    for name, missing in (("tree", "nltk.tree"), ("amr", "penman")):
        monkeypatch.setitem(sys.modules, missing, None)
        path = write(tmp_path / "file", TEXTS[name])
        assert call(name, path, "--output", tmp_path / "out") == 2
        assert "pip install nltk penman" in capsys.readouterr().err


def test_unknown_format():
    with pytest.raises(ValueError, match="FORMAT 'pos'; allowed: ner, tree, amr"):
        list(module.pairs("pos", []))


def test_neither_torch_nor_fairseq_is_needed(run, user_dir):
    code = f"""
import sys, types
for name, folder in (("fairseq_ext", ""), ("fairseq_ext.routed", "/routed")):
    package = sys.modules[name] = types.ModuleType(name)
    package.__path__ = [{str(user_dir)!r} + folder]
import fairseq_ext.routed.linearise, fairseq_ext.routed.scores
sys.exit(sorted({{"torch", "fairseq"}} & set(sys.modules)) or 0)
"""
    run("python", "-I", "-c", code)


# ---------------------------------------------------------------- the corpora themselves


def corpus(real_data, name):
    path = real_data / name
    if not path.exists():
        pytest.skip(f"no {name} in {real_data}")
    return path


def test_conll2003(real_data):
    path = corpus(real_data, "conll2003/eng.train.gz")
    # a document's mark and the blank line around it are no sentences
    lines = gzip.decompress(path.read_bytes()).decode().split("\n\n")
    expected = sum(1 for line in lines if line.strip() and "-DOCSTART-" not in line)
    examples = list(module.pairs("ner", [path]))
    assert len(examples) == expected == 14041
    entities = [tag for _, tags in examples for tag in tags.split() if tag.startswith("B-")]
    # Tjong Kim Sang and De Meulder (2003), Table 2
    counts = {kind: entities.count(f"B-{kind}") for kind in ("LOC", "MISC", "ORG", "PER")}
    assert counts == {"LOC": 7140, "MISC": 3438, "ORG": 6321, "PER": 6600}


def test_treebank_sample(real_data):
    path = corpus(real_data, "wsj_sample/treebank.zip")
    examples = list(module.pairs("tree", [path]))
    assert len(examples) == 3914 and not any(isinstance(example, Exception) for example in examples)
    for source, target in examples[::50]:
        text = module.trees.backward(source, target)
        assert module.trees.forward(text) == (source, target)
        assert "-NONE-" not in text


def test_little_prince(real_data):
    path = corpus(real_data, "amr_little_prince/amr-bank-struct-v1.6.txt")
    examples = list(module.pairs("amr", [path]))
    assert len(examples) == 1562 and not any(isinstance(example, Exception) for example in examples)
    for source, target in examples[::50]:
        again = module.graphs.forward(module.graphs.backward(source, target).strip())
        assert again == (source, target)


@pytest.mark.parametrize("more", [[], ["predictions", "--inverse"]])
def test_a_file_that_is_read_is_not_replaced(more, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    output = "predictions" if more else "train"
    assert command.main(["linearise", "ner", "train.src", *more, "--output", output]) == 2
    assert "is read as well and would be lost" in capsys.readouterr().err
