"""-s and -t, or the pair in the data folder."""

from types import SimpleNamespace

import pytest

from fairseq_ext.streams.language_pair import LanguagePair
from fairseq_ext.streams.requested_direction import requested_direction


def options(source=None, target=None, lang_pairs=None):
    return SimpleNamespace(source_lang=source, target_lang=target, lang_pairs=lang_pairs)


def test_the_options_go_before_the_folder(tmp_path):
    (tmp_path / "train.fr-en.fr.idx").touch()
    assert requested_direction(options("de", "en"), tmp_path) == LanguagePair("de", "en")
    several = requested_direction(options("de+fr", "en", "de-en,fr-en"), tmp_path)
    assert several.sources == ("de", "fr")


def test_without_options_the_folder_decides(tmp_path):
    (tmp_path / "train.fr-en.fr.idx").touch()
    cfg = options()
    assert requested_direction(cfg, tmp_path) == LanguagePair("fr", "en")
    assert cfg == options(), "the options stay as the user has given them"
    assert requested_direction(options(lang_pairs="de-en"), tmp_path) is None


def test_a_folder_of_several_pairs_decides_nothing(tmp_path):
    for name in ("fr-en.fr", "fr-en.en", "en-fr.en", "fr-None.fr"):
        (tmp_path / f"train.{name}.idx").touch()
    assert requested_direction(options(), tmp_path) == LanguagePair("en", "fr")
    (tmp_path / "train.de-en.de.idx").touch()
    with pytest.raises(ValueError, match="several pairs, de-en, en-fr, fr-en; give -s and -t"):
        requested_direction(options(), tmp_path)


@pytest.mark.parametrize(
    "cfg, message",
    [
        (options("de"), "-s de -t None: give both languages or neither"),
        (options(target="en"), "-s None -t en: give both"),
        (options(), "holds no binarised pair; give -s and -t"),
        (options("d-e", "en"), "d-e"),
        (options("to", "en"), "language 'to': allowed: a name without a dot"),
        (options("de+zh.cn", "en"), "language 'zh.cn': allowed: a name"),
    ],
)
def test_what_cannot_be_asked_is_refused(cfg, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        requested_direction(cfg, tmp_path)
