"""A language pair: its text, its sides, its reverse."""

import pytest

from fairseq_ext.streams.language_pair import (
    LanguagePair,
    label_of,
    languages,
    pair_of,
    reverse_of,
    sides,
)


@pytest.mark.parametrize(
    "text, source, target, sources",
    [("de-en", "de", "en", ("de",)), ("de+fr-en_GB", "de+fr", "en_GB", ("de", "fr"))],
)
def test_the_text_and_the_pair_are_the_same(text, source, target, sources):
    pair = LanguagePair.parse(text)
    assert pair == (source, target) and str(pair) == f"{pair}" == text
    assert (pair.source, pair.target, pair.sources) == (source, target, sources)
    assert str(pair.reverse) == reverse_of(text) == f"{target}-{source}"
    assert pair.reverse.reverse == pair


@pytest.mark.parametrize("text", ["", "de", "de-", "-en", "-", "de-en-fr", "de--en"])
def test_what_is_not_a_pair_is_refused(text):
    with pytest.raises(ValueError, match="not of the form SOURCE-TARGET"):
        LanguagePair.parse(text)


def test_a_pair_cannot_be_changed():
    pair = LanguagePair.parse("de-en")
    with pytest.raises(AttributeError):
        pair.source = "fr"
    assert {pair: 1}[LanguagePair("de", "en")] == 1


@pytest.mark.parametrize("stream, label", [("de-en", ""), ("de-en@bt", "bt"), ("de-en@a@b", "a@b")])
def test_a_stream_is_a_pair_and_a_label(stream, label):
    assert (pair_of(stream), label_of(stream)) == ("de-en", label)


def test_languages_of_several_pairs_stand_in_their_order():
    pairs = ["de-en", "fr-en", "en-de", "de-fr"]
    assert sides(pairs) == (["de", "fr", "en"], ["en", "de", "fr"])
    assert languages(pairs) == ["de", "en", "fr"]
    assert sides([]) == ([], []) and languages([]) == []
