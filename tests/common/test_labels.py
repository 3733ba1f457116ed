"""Labels as entries of a dictionary, and the errors that name a line."""

import re

import pytest
import torch
from common.words import dictionary_with

from fairseq_ext.common.labels import (
    check_dictionary,
    check_labels,
    check_texts,
    entry,
    labels,
    numbers,
)

END = 2


@pytest.fixture
def dictionary():
    """Four special symbols, three labels, and an entry that fairseq-preprocess adds."""
    return dictionary_with("good", "bad", "mixed", "madeupword0000")


def test_numbers_of_labels(dictionary):
    assert labels(dictionary) == ["good", "bad", "mixed"]
    targets = torch.tensor([[4, END], [6, END]])
    assert numbers(targets, dictionary).tolist() == [0, 2]
    assert [entry(number, dictionary).tolist() for number in (0, 2)] == [[4], [6]]


def test_labels_have_a_dictionary_of_their_own(dictionary):
    check_dictionary(dictionary, dictionary_with("word"), "label")
    with pytest.raises(ValueError, match="dict.label.txt is the dictionary of the texts.*--joined"):
        check_dictionary(dictionary, dictionary, "label")


def test_one_label_is_none_to_choose_from():
    message = r"^dict.label.txt: 1 labels \(\['good'\]\), at least 2 needed$"
    with pytest.raises(ValueError, match=message):
        check_dictionary(dictionary_with("good"), dictionary_with("word"), "label")


@pytest.mark.parametrize("file", ["train.label", None])
def test_good_labels_and_texts(dictionary, file):
    check_labels(file, [torch.tensor([4, END]), torch.tensor([6, END])], dictionary, "label")
    check_texts(file, [2, 9])


@pytest.mark.parametrize(
    "wrong, message",
    [
        ([END], "0 words, a label is one"),
        ([4, 5, END], "2 words, a label is one"),
        ([3, END], "a label that dict.l.txt does not have; it has good, bad, mixed"),
        ([7, END], "a label that dict.l.txt does not have; it has good, bad, mixed"),
    ],
)
@pytest.mark.parametrize("file, place", [("train.l", "train.l: line 2: "), (None, "text 2 of 3: ")])
def test_wrong_label_names_its_line(dictionary, wrong, message, file, place):
    targets = [torch.tensor(entries) for entries in ([4, END], wrong, [5, END])]
    with pytest.raises(ValueError, match=f"^{re.escape(place + message)}$"):
        check_labels(file, targets, dictionary, "l")


@pytest.mark.parametrize(
    "file, sizes, message",
    [
        ("train.text", [3, 1, 2, 1], "train.text: line 2: an empty text (2 of them)"),
        (None, [3, 2, 1], "text 3 of 3: an empty text"),
        (None, [1], "an empty text"),
    ],
)
def test_empty_text_names_its_line(file, sizes, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        check_texts(file, sizes)
