"""Trained models that an option names: their contents, and errors with the option and the file."""

from argparse import Namespace

import pytest
import torch
from fairseq.data import Dictionary

from fairseq_ext.common.stored import Stored, check_symbols, read_stored

OPTION = "--language-model"


def write_dictionary(path, words):
    path.write_text("".join(f"{word} 1\n" for word in words), encoding="utf-8")
    return Dictionary.load(str(path))


def stored(data):
    return Stored(OPTION, "lm.pt", Namespace(_name="mtl_full_gru"), Namespace(data=data), {})


def test_a_file_that_is_not_there_or_no_checkpoint_is_named(tmp_path):
    path = tmp_path / "lm.pt"
    with pytest.raises(ValueError, match=f"^{OPTION} {path}: there is no such file$"):
        read_stored(OPTION, str(path))
    path.write_bytes(b"no checkpoint")
    with pytest.raises(ValueError, match=f"^{OPTION} {path}: "):
        read_stored(OPTION, str(path))


def test_contents_of_a_checkpoint(tmp_path, monkeypatch):
    path, weights = tmp_path / "lm.pt", {"weight": torch.ones(2)}
    path.touch()
    cfg = Namespace(model=Namespace(_name="routed_gru"), task=Namespace(data="data"))
    monkeypatch.setattr(
        "fairseq.checkpoint_utils.load_checkpoint_to_cpu",
        lambda name: {"cfg": cfg, "model": weights},
    )
    assert read_stored(OPTION, str(path)) == (OPTION, str(path), cfg.model, cfg.task, weights)


def test_the_architecture_is_the_registered_model():
    assert stored("").architecture == "routed_gru"


@pytest.mark.parametrize(
    "words, message",
    [
        (["a", "c"], "whose word 5 is 'b'; in dict.de.txt of the run's data it is 'c'"),
        (["a"], "which has 6 words; dict.de.txt of the run's data has 5"),
    ],
)
def test_other_words_than_those_of_the_training_are_refused(tmp_path, words, message):
    write_dictionary(tmp_path / "dict.txt", ["a", "b"])
    other = write_dictionary(tmp_path / "other.txt", words)
    with pytest.raises(ValueError, match=f"^{OPTION} lm.pt: was trained with .*{message}$"):
        check_symbols(stored(str(tmp_path)), "dict.txt", "de", other)


def test_the_same_words_or_a_folder_that_is_gone(tmp_path):
    same = write_dictionary(tmp_path / "dict.txt", ["a", "b"])
    check_symbols(stored(str(tmp_path)), "dict.txt", "de", same)
    check_symbols(stored(str(tmp_path / "gone")), "dict.txt", "de", same)
