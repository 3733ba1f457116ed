"""Options with which a model of the same parameters computes something else are named."""

import argparse

import pytest
from common import inprocess
from options.systems import SYSTEMS

from fairseq_ext.compat.checkpoints.changed_options import warn_of_other_options


@pytest.mark.parametrize("begins", ["--save-dir", "--finetune-from-model"])
def test_a_training_with_other_heads(toy_corpus, tmp_path, begins, caplog):
    """As many parameters fit; without the warning nothing told that the model is another one."""
    kind = SYSTEMS["dual_transformer"]
    words = ["--max-tokens", 200, "--disable-validation", "--save-dir", tmp_path]
    inprocess.train(*kind.words(toy_corpus.two, *words, "--max-update", 1))
    path = tmp_path / "checkpoint_last.pt"
    if begins == "--finetune-from-model":
        words += [begins, path, "--save-dir", tmp_path / "other"]
    words += ["--max-update", 2]
    inprocess.train(*kind.words(toy_corpus.two, *words))
    assert "when it was trained" not in caplog.text
    inprocess.train(*kind.words(toy_corpus.two, *words, "--attention-heads", 1, "--max-update", 3))
    texts = [text for text in caplog.messages if "when it was trained" in text]
    assert len(texts) == 1 and "attention_heads is 1 and was " in texts[0]


def test_what_is_not_compared(caplog):
    stored = {"_name": "dual_transformer", "lang_pairs": "xx-yy,yy-xx", "dropout": 0.1, "layers": 2}
    present = {"_name": "dual_transformer", "lang_pairs": "xx-yy", "dropout": 0.2, "layers": None}
    warn_of_other_options("x.pt", {"model": stored}, {"model": present})
    warn_of_other_options("x.pt", {"model": {**stored, "_name": "lstm"}}, {"model": present})
    warn_of_other_options("x.pt", None, {"model": argparse.Namespace(arch="lstm")})
    assert not caplog.messages
    warn_of_other_options("x.pt", {"model": stored}, {"model": {**present, "layers": 3}})
    assert "x.pt: layers is 3 and was 2 when it was trained" in caplog.text
