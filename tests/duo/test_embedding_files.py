"""Files of word vectors: every format, and what is wrong with a file by file and line."""

import codecs
import gzip
import logging
import struct

import numpy as np
import pytest
import torch
from fairseq.data import Dictionary

from fairseq_ext.duo import embedding_files

VECTORS = {"the": [0.5, -1.0, 2.0], "café": [1e-3, 4.0, -2.5], "of": [1.0, 1.0, 1.0]}
TEXT = "".join(f"{word} {' '.join(map(str, vector))}\n" for word, vector in VECTORS.items())
HEADER = "3 3\n"


def binary(newline):
    parts = [
        word.encode("utf-8") + b" " + struct.pack("<3f", *vector) + newline
        for word, vector in VECTORS.items()
    ]
    return HEADER.encode() + b"".join(parts)


FORMATS = {
    "glove.txt": TEXT.encode(),
    "word2vec.vec": (HEADER + TEXT).encode(),
    "fasttext.vec": (HEADER + TEXT.replace("\n", " \n")).encode(),  # spaces at the ends of lines
    "marked.txt": codecs.BOM_UTF8 + TEXT.encode(),
    "windows.vec": codecs.BOM_UTF8 + (HEADER + TEXT).replace("\n", "\r\n").encode(),
    "dots.txt": ". . 9 9 9\n".encode() + b"" + TEXT.encode(),
    "word2vec.bin": binary(b"\n"),
    "gensim.bin": binary(b""),
}


def dictionary(*words):
    counted = Dictionary()
    for count, word in enumerate(words, start=1):
        counted.add_symbol(word, n=count)
    return counted


@pytest.mark.parametrize("compressed", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("name", FORMATS)
def test_formats(name, compressed, tmp_path):
    path = tmp_path / (name + ".gz" * compressed)
    data = FORMATS[name]
    path.write_bytes(gzip.compress(data) if compressed else data)
    if name == "dots.txt":  # a word with spaces is no trouble where the width is known
        path.write_bytes(b"4 3\n" + data)
    vectors, width = embedding_files.read(str(path), ["the", "café", "absent"])
    assert width == 3 and sorted(vectors) == ["café", "the"]
    for word, vector in vectors.items():
        assert vector.dtype == np.float32
        np.testing.assert_allclose(vector, VECTORS[word], rtol=1e-6)


BROKEN = [
    ("e.txt", b"", "e.txt: empty"),
    ("e.txt", b"the 1 2 3\nof 1 2\n", r"e.txt:2: 2 numbers after the word, 3 needed"),
    ("e.txt", b"the 1 2 x\n", r"e.txt:1: not a number: .*x"),
    ("e.txt", b"the 1 nan 3\n", "e.txt:1: a number that is infinite or not a number"),
    ("e.txt", b"the\n", "e.txt:1: 0 numbers after the word"),
    ("e.vec", b"4 3\nthe 1 2 3\n", "e.vec:2: the file ends after 1 words, 4 announced"),
    ("e.bin", b"words\n", "e.bin:1: a word2vec .bin file starts with a line 'WORDS WIDTH'"),
    ("e.bin", binary(b"\n")[:-5], "e.bin: word 3 of 3: the file ends within its vector"),
    ("e.bin", b"5 3\n" + binary(b"\n")[4:], "e.bin: word 4 of 5: the file ends here"),
    ("e.bin", b"2 1\n" + b"x" * 5000, "e.bin: word 1 of 2: no end of the word in 4096 bytes"),
    ("e.bin", embedding_files.FASTTEXT_MODEL + b"....", "e.bin: a fastText model; take the .vec"),
    ("e.txt.gz", gzip.compress(TEXT.encode())[:-9], "e.txt.gz: broken gzip file"),
]


@pytest.mark.parametrize("name, data, message", BROKEN, ids=range(len(BROKEN)))
def test_broken_files_are_named(name, data, message, tmp_path):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(ValueError, match=message):
        embedding_files.read(str(tmp_path / name), ["the", "of"])


def test_table_of_a_dictionary(tmp_path, caplog):
    """Known words are the file's, the others drawn with its width; the coverage is logged."""
    path = tmp_path / "glove.txt"
    path.write_text(TEXT, encoding="utf-8")
    words = dictionary("the", "absent", "of", "rare")  # counts 1, 2, 3, 4
    with caplog.at_level(logging.INFO, logger=embedding_files.logger.name):
        table = embedding_files.embedding("S", words, str(path), None)
    assert "2 of 4 words (50.0%), 40.0% of the occurrences" in caplog.text
    assert table.weight[words.index("of")].tolist() == VECTORS["of"]
    assert not table.weight[words.pad()].any() and table.weight[words.index("rare")].all()
    scaled = embedding_files.embedding("S", words, str(path), 3, unit=True)
    rows = scaled.weight[[words.index("the"), words.index("of")]]
    torch.testing.assert_close(rows.square().mean(), torch.tensor(1 / 3))


def test_drawn_without_a_file():
    torch.manual_seed(0)
    table = embedding_files.embedding("S", dictionary(*map(str, range(400))), None, 25)
    assert table.weight[4:].std().item() == pytest.approx(0.2, rel=0.05)


def test_another_width_and_no_coverage_are_refused(tmp_path):
    path = tmp_path / "glove.txt"
    path.write_text(TEXT, encoding="utf-8")
    with pytest.raises(ValueError, match=r"glove.txt: vectors of 3 numbers, not 5 \(S\)"):
        embedding_files.embedding("S", dictionary("the"), str(path), 5)
    with pytest.raises(ValueError, match=r"glove.txt: has none of the 2 words .* \(P\)"):
        embedding_files.embedding("P", dictionary("other", "words"), str(path), None)
    with pytest.raises(ValueError, match="nowhere.txt: no such file of word vectors"):
        embedding_files.embedding("P", dictionary("other"), str(tmp_path / "nowhere.txt"), None)


@pytest.mark.parametrize("first, width", [("7 1 2 3", 3), ("word 0.5", 1)])
def test_a_first_line_that_only_looks_like_a_header(first, width, tmp_path):
    """A number among the words, and vectors of one number: both lines are vectors."""
    path = tmp_path / "vectors.vec"
    numbers = " ".join(["4"] * width)
    path.write_text(f"{first}\nother {numbers}\n", encoding="utf-8")
    vectors, read_width = embedding_files.read(str(path), [first.split()[0], "other"])
    assert read_width == width and set(vectors) == {first.split()[0], "other"}
    assert vectors[first.split()[0]].tolist() == [float(number) for number in first.split()[1:]]


def test_a_fasttext_model_is_named(tmp_path):
    path = tmp_path / "model.bin"
    path.write_bytes((793712314).to_bytes(4, "little") + bytes(20))  # fastText's magic number
    with pytest.raises(ValueError, match="a fastText model; take the .vec file"):
        embedding_files.read(str(path), ["word"])
