"""Word vectors of texts, in word2vec's text format."""

from argparse import ArgumentParser

import pytest
from corpora import word_vectors


def test_every_word_has_a_vector(tmp_path, write):
    pytest.importorskip("gensim", reason="word-vectors needs gensim: pip install .[recipes]")
    text = write(tmp_path / "text", ["good film", "bad film"] * 5)
    parser = ArgumentParser()
    word_vectors.add_arguments(parser)
    output = tmp_path / "v.vec"
    word_vectors.run(parser.parse_args([str(text), "--width", "3", "--output", str(output)]))
    first, *lines = output.read_text(encoding="utf-8").splitlines()
    assert first == "3 3" and {line.split()[0] for line in lines} == {"good", "bad", "film"}
    assert all(len(line.split()) == 4 for line in lines)
