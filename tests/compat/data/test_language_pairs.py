"""The pair of languages that a folder of data says, where the options do not."""

from types import SimpleNamespace

import pytest
from fairseq.data import Dictionary, LanguagePairDataset
from fairseq.data.multilingual.multilingual_data_manager import MultilingualDatasetManager
from fairseq.tasks.translation import TranslationTask, load_langpair_dataset

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


@pytest.mark.parametrize("reader", ["translation", "manager"])
def test_truncated_sources_have_their_sizes(reader, toy_corpus):
    """In stock, those that are not cut count a token too many, and batches are smaller."""
    dictionaries = [Dictionary.load(f"{toy_corpus.two}/dict.{side}.txt") for side in ("xx", "yy")]

    def pairs(limit, truncate):
        words = [str(toy_corpus.two), "train"]
        sides = ["xx", dictionaries[0], "yy", dictionaries[1]]
        options = {"truncate_source": truncate, "max_source_positions": limit}
        if reader == "translation":
            more = (False, None, 1, True, False)
            return load_langpair_dataset(*words, *sides, *more, max_target_positions=99, **options)
        manager = MultilingualDatasetManager.__new__(MultilingualDatasetManager)
        more = (False, None, 1)
        source, target, _ = manager.load_lang_dataset(*words, *sides, *more, **options)
        return LanguagePairDataset(source, source.sizes, sides[1], target, target.sizes, sides[3])

    whole = pairs(99, False)
    assert {4, 5} == set(whole.src_sizes.tolist())
    for limit in (4, 5, 6):
        cut = pairs(limit, True)
        lengths = [len(cut[index]["source"]) for index in range(len(cut))]
        assert cut.src_sizes.tolist() == lengths == whole.src_sizes.clip(max=limit).tolist()
    batches = [
        dataset.batch_by_size(dataset.ordered_indices(), max_tokens=40)
        for dataset in (whole, pairs(99, True))
    ]
    assert len(batches[0]) == len(batches[1])
