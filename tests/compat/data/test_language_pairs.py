"""The pair of languages that a folder of data says, where the options do not."""

from types import SimpleNamespace

import pytest
from fairseq.tasks.translation import TranslationTask

from fairseq_ext.compat.data.language_pairs import inferred_pair, language_pairs
from fairseq_ext.compat.user_errors import OptionError


def folder_of(folder, *names):
    for name in names:
        (folder / name).write_text("", encoding="utf-8")
    return str(folder)


ONE = ("train.xx-yy.xx.bin", "train.xx-yy.yy.idx", "train.xx-None.xx.bin", "dict.xx.txt")
TWO = (*ONE, "test.xx-zz.xx", "preprocess.log", "notes.of-today.txt")


def test_pairs_are_those_of_the_files(tmp_path):
    assert language_pairs(folder_of(tmp_path, *ONE)) == [("xx", "yy")]
    assert language_pairs(folder_of(tmp_path, *TWO)) == [("xx", "yy"), ("xx", "zz")]
    assert language_pairs(str(tmp_path / "none")) == []


@pytest.mark.parametrize(
    "names, options, pair",
    [
        (ONE, (None, None), ("xx", "yy")),
        (ONE, ("yy", None), ("yy", "xx")),
        (ONE, (None, "yy"), ("xx", "yy")),
        (TWO, (None, "zz"), ("xx", "zz")),
        (TWO, ("yy", None), ("yy", "xx")),
        (("train.xx-None.xx.bin",), (None, "yy"), (None, "yy")),
    ],
)
def test_the_only_pair_that_fits(tmp_path, names, options, pair):
    assert inferred_pair(folder_of(tmp_path, *names), *options) == pair


@pytest.mark.parametrize(
    "options, message",
    [
        ((None, None), "several language pairs, xx-yy, xx-zz; give --source-lang and --target"),
        (("xx", None), "--source-lang xx: .* has several pairs with it"),
        ((None, "qq"), "--target-lang qq: .* has no pair with it; allowed: those of xx-yy, xx-zz"),
    ],
)
def test_others_are_refused(tmp_path, options, message):
    source, target = options
    cfg = SimpleNamespace(data=folder_of(tmp_path, *TWO), source_lang=source, target_lang=target)
    with pytest.raises(OptionError, match=message):
        TranslationTask.setup_task(cfg)
