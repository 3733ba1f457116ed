"""Labels by TF-IDF and logistic regression."""

from argparse import ArgumentParser

import pytest
from corpora import tfidf


def test_labels_of_words_that_were_seen(tmp_path, write):
    pytest.importorskip("sklearn", reason="tfidf needs scikit-learn: pip install .[recipes]")
    write(tmp_path / "train.text", ["good film", "bad film"] * 5)
    write(tmp_path / "train.label", ["pos", "neg"] * 5)
    write(tmp_path / "test.text", ["bad bad", "good"])
    parser = ArgumentParser()
    tfidf.add_arguments(parser)
    tfidf.run(parser.parse_args([str(tmp_path), "--output", str(tmp_path / "labels")]))
    assert (tmp_path / "labels").read_text(encoding="utf-8").split() == ["neg", "pos"]
