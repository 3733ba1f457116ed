"""--lang-pairs: what it may say, and what may be the name of a language."""

import pytest

from fairseq_ext.streams.lang_pairs import parse_lang_pairs


def test_lang_pairs():
    assert parse_lang_pairs("de-en") == ["de-en"]
    assert parse_lang_pairs(" de-en, en-de ,fr-en,") == ["de-en", "en-de", "fr-en"]


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "names no pair"),
        (" , ", "names no pair"),
        ("deen", "'deen' is not of the form SOURCE-TARGET"),
        ("de-", "'de-' is not of the form"),
        ("-en", "'-en' is not of the form"),
        ("de-en-fr", "'de-en-fr' is not of the form"),
        ("de-de", "two different languages"),
        ("de-en,fr-en,de-en", "'de-en' is named twice"),
    ],
)
def test_bad_lang_pairs_name_the_option_and_the_value(text, message):
    with pytest.raises(ValueError) as error:
        parse_lang_pairs(text)
    assert f"--lang-pairs {text!r}" in str(error.value) and message in str(error.value)


@pytest.mark.parametrize("name", ["to", "zh.cn", "type"])
def test_names_that_torch_does_not_take(name):
    with pytest.raises(ValueError, match=f"language '{name}': allowed: a name without a dot"):
        parse_lang_pairs(f"{name}-en")
    assert parse_lang_pairs("en-to_,zh_CN-en") == ["en-to_", "zh_CN-en"]
