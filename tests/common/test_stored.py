"""Trained models that an option names: their contents, and errors with the option and the file."""

from argparse import Namespace

import pytest
import torch
from fairseq.data import Dictionary

from fairseq_ext.common.stored import Stored, check_symbols, read_stored
from fairseq_ext.compat.checkpoints.dictionary_digests import digest

OPTION = "--language-model"


def write_dictionary(path, words):
    path.write_text("".join(f"{word} 1\n" for word in words), encoding="utf-8")
    return Dictionary.load(str(path))


def stored(data, digests=None):
    model, task = Namespace(_name="mtl_full_gru"), {"data": data}
    return Stored(OPTION, "lm.pt", model, task, {}, digests or {})


def test_a_file_that_is_not_there_or_no_checkpoint_is_named(tmp_path):
    path = tmp_path / "lm.pt"
    with pytest.raises(ValueError, match=f"^{OPTION} {path}: there is no such file$"):
        read_stored(OPTION, str(path))
    path.write_bytes(b"no checkpoint")
    with pytest.raises(ValueError, match=f"^{OPTION} {path}: "):
        read_stored(OPTION, str(path))


@pytest.mark.parametrize("extra", [None, {}, {"dictionaries": {"de": "6:a"}}])
@pytest.mark.parametrize("kind", [dict, Namespace])  # the second: a task without a dataclass
def test_contents_of_a_checkpoint(tmp_path, monkeypatch, extra, kind):
    path, weights = tmp_path / "lm.pt", {"weight": torch.ones(2)}
    path.touch()
    cfg = {"model": Namespace(_name="routed_gru"), "task": kind(data="data")}
    monkeypatch.setattr(
        "fairseq.checkpoint_utils.load_checkpoint_to_cpu",
        lambda name: {"cfg": cfg, "model": weights, "extra_state": extra},
    )
    digests = (extra or {}).get("dictionaries", {})
    expected = (OPTION, str(path), cfg["model"], {"data": "data"}, weights, digests)
    assert read_stored(OPTION, str(path)) == expected


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


@pytest.mark.parametrize(
    "file, name", [("dict.de.txt", "de"), ("dict.txt", "source"), ("dict.txt", "de")]
)
@pytest.mark.parametrize("words", [["b", "a"], ["a", "c"], ["a"]], ids=["order", "words", "size"])
def test_digests_tell_words_apart_without_the_folder(tmp_path, file, name, words):
    trained = write_dictionary(tmp_path / "trained.txt", ["a", "b"])
    moved = stored(str(tmp_path / "gone"), {name: digest(trained)})
    check_symbols(moved, file, "de", trained)
    other = write_dictionary(tmp_path / "other.txt", words)
    reason = "6 words, not 5" if len(words) == 1 else "as many words, but not the same or in anoth"
    message = f"another dictionary of de than dict.de.txt of the run's data: {reason}"
    with pytest.raises(ValueError, match=f"^{OPTION} lm.pt: was trained with {message}"):
        check_symbols(moved, file, "de", other)


def test_digests_count_where_the_folder_holds_other_words_by_now(tmp_path):
    trained = write_dictionary(tmp_path / "trained.txt", ["a", "b"])
    now = write_dictionary(tmp_path / "dict.de.txt", ["b", "a"])
    model = stored(str(tmp_path), {"de": digest(trained)})
    check_symbols(model, "dict.de.txt", "de", trained)
    with pytest.raises(ValueError, match="lm.pt: was trained with another dictionary of de"):
        check_symbols(model, "dict.de.txt", "de", now)
    # the word is named where the folder still holds those of the training
    write_dictionary(tmp_path / "dict.de.txt", ["a", "b"])
    with pytest.raises(ValueError, match="dict.de.txt, whose word 4 is 'a'"):
        check_symbols(model, "dict.de.txt", "de", now)


def test_the_digest_of_another_language_says_nothing(tmp_path):
    words = write_dictionary(tmp_path / "other.txt", ["a"])
    check_symbols(stored("gone", {"en": "6:a", "source": "6:a"}), "dict.de.txt", "de", words)
