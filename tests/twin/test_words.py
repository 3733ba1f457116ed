"""Words of tokens, and the means of their occurrences."""

import pytest

from fairseq_ext.twin.commands import words as tool


@pytest.mark.parametrize(
    "unit, symbols, expected",
    [
        ("token", "a b", [("a", [0]), ("b", [1])]),
        ("subword_nmt", "in@@ de@@ ed so", [("indeed", [0, 1, 2]), ("so", [3])]),
        ("sentencepiece", "\u2581in de \u2581so", [("inde", [0, 1]), ("so", [2])]),
        ("sentencepiece", "\u2581 o n \u2581 a", [("on", [0, 1, 2]), ("a", [3, 4])]),
        (
            "sentencepiece",
            "\u2581 <0xE1> <0x88> <0xB0> \u120b \u2581<0 xE1>",  # bytes, and a text like them
            [("\u1230\u120b", [0, 1, 2, 3, 4]), ("<0xE1>", [5, 6])],
        ),
        ("token", "<0xE1>", [("<0xE1>", [0])]),
        ("letter", "o n | a t", [("on", [0, 1]), ("at", [3, 4])]),
        ("letter", "| a", [("a", [1])]),
        ("characters", "o n \u2581 a t", [("on", [0, 1]), ("at", [3, 4])]),
        ("letter", "", []),
    ],
)
def test_words(unit, symbols, expected):
    assert tool.words_of(symbols.split(), unit) == expected


def test_means_of_words():
    """A word's value is the mean of its tokens; its mean and deviation are over occurrences."""
    values = [("a@@", 1.0), ("b", 3.0), ("c", 5.0), ("c", 7.0)]
    tokens = [tool.Token(0, t, text, value, 0.0) for t, (text, value) in enumerate(values)]
    values = tool.occurrences({0: tokens}, "subword_nmt")
    means = tool.words_with_frequency(values, {"ab": 4, "c": 9})
    assert means == [tool.Word("c", 9, 2, 6.0, 1.0), tool.Word("ab", 4, 1, 2.0, 0.0)]
    means = tool.words_with_frequency(values, None)
    assert [word.frequency for word in means] == [2, 1]
