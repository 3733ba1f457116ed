"""Files of --encoder-embed-path: all vectors are read, errors name file and line."""

import pytest
import torch
from common import inprocess
from common.words import dictionary_with
from fairseq import utils
from torch import nn

from fairseq_ext.compat.data.data_files import UnreadableFile
from fairseq_ext.compat.text_lines import UnreadableText


@pytest.fixture
def read(tmp_path):
    """Function (text) -> {word: numbers}."""

    def read(text):
        file = tmp_path / "vectors.txt"
        file.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
        parsed = utils.parse_embedding(str(file))
        return {word: vector.tolist() for word, vector in parsed.items()}

    return read


@pytest.mark.parametrize(
    "text, vectors",
    [
        ("2 3\na 1 2 3\nb 4 5 6\n", {"a": [1, 2, 3], "b": [4, 5, 6]}),
        ("a 1 2 3\nb 4 5 6\n", {"a": [1, 2, 3], "b": [4, 5, 6]}),
        ("a 1 2 3\n", {"a": [1, 2, 3]}),
        ("# by us\na 1 2 3\n\nb 4 5 6 \n", {"a": [1, 2, 3], "b": [4, 5, 6]}),
        ("1 1 2\n2 3 4\n", {"1": [1, 2], "2": [3, 4]}),
        ("a 1 2\n. . . 3 4\n", {"a": [1, 2], ". . .": [3, 4]}),
        ("\ufeffa 1 2\r\n\u2028 3 4\r\n", {"a": [1, 2], "\u2028": [3, 4]}),
    ],
)
def test_every_vector_is_read(read, text, vectors):
    assert read(text) == vectors


@pytest.mark.parametrize(
    "text, message",
    [
        ("", ": no vectors"),
        ("2 3\n", ": no vectors"),
        ("\n", ": no vectors"),
        ("2 3\na 1 2 3\nb 1 2\n", r", line 3: 2 numbers after the word; allowed: 3"),
        ("a 1 2 3\nb 1 2 3\nc 7\n", r", line 3: 1 numbers after the word; allowed: 3"),
        ("a 1 2\nb 1 2\nb 3 4 5\n", r", line 3: 3 numbers after the word; allowed: 2"),
        ("2 3\na 1 x 3\n", r", line 2: 'x'; allowed: a word and 3 numbers"),
        ("2 3\na 1 nan 3\n", r", line 2: 'nan'; allowed"),
        ("a\nb\n", r", line 2: 0 numbers after the word"),
    ],
)
def test_errors_name_the_line(read, text, message):
    with pytest.raises(UnreadableFile, match=f"vectors.txt{message}"):
        read(text)


def test_other_encodings_and_no_file(read, tmp_path):
    with pytest.raises(UnreadableText, match="vectors.txt, line 2: not UTF-8"):
        read(b"a 1 2\nb\xe9 1 2\n")
    with pytest.raises(UnreadableText, match=r"cannot read .*nofile: No such file"):
        utils.parse_embedding(str(tmp_path / "nofile"))


def test_a_file_that_was_cut_off_is_named(read, caplog):
    read("3 2\na 1 2\nb 1 2\n")
    (message,) = caplog.messages
    assert message.endswith("vectors.txt: ends after 2 of the 3 words of its first line")


def test_vectors_have_the_width_of_the_embeddings(tmp_path, caplog):
    """Stock gives every entry of a row the one number of a vector of width 1."""
    dictionary = dictionary_with(*"abc")
    file = tmp_path / "vectors.txt"
    table = nn.Embedding(len(dictionary), 3)
    file.write_text("a 1 2 3\nb 4 5 6\n")
    utils.load_embedding(utils.parse_embedding(str(file)), dictionary, table)
    assert table.weight[dictionary.index("a")].tolist() == [1, 2, 3]
    file.write_text("a 7\nb 8\n")
    with pytest.raises(UnreadableFile, match="vectors of 1 numbers, and the embeddings have 3"):
        utils.load_embedding(utils.parse_embedding(str(file)), dictionary, table)
    assert not caplog.messages
    file.write_text("x 1 2 3\ny 4 5 6\n")
    utils.load_embedding(utils.parse_embedding(str(file)), dictionary, table)
    assert "has none of the" in caplog.text
    # a dictionary that another program has made
    utils.load_embedding({"a": torch.ones(3)}, dictionary, table)
    assert table.weight[dictionary.index("a")].tolist() == [1, 1, 1]


def test_a_trained_model_needs_no_file(toy_corpus, tmp_path):
    """Its checkpoint has what became of the vectors: it translates the same without the file."""
    file, folder = tmp_path / "vectors.txt", tmp_path / "model"
    file.write_text("an1 1 2 3 4\nan2 4 3 2 1\n")
    languages = [toy_corpus.two, "-s", "xx", "-t", "yy"]
    sizes = ["--encoder-embed-dim", 4, "--decoder-embed-dim", 4, "--decoder-out-embed-dim", 4]
    inprocess.train(
        *(*languages, "--arch", "lstm", *sizes, "--encoder-hidden-size", 4),
        *("--decoder-hidden-size", 4, "--encoder-embed-path", file, "--max-update", 1),
        *("--batch-size", 40, "--lr", 0.1, "--save-dir", folder, "--disable-validation"),
    )
    words = ["--path", folder / "checkpoint_last.pt", "--batch-size", 24]
    with_file = inprocess.hypotheses(inprocess.generate(*languages, *words))
    file.unlink()
    assert inprocess.hypotheses(inprocess.generate(*languages, *words)) == with_file
    assert inprocess.validate(*languages, "--task", "translation", *words)
