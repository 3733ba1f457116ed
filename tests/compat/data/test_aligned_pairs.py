"""--load-alignments in both directions, of several parts, and behind symbols."""

import logging
from argparse import Namespace

import pytest
from fairseq.data import PrependTokenDataset
from fairseq.data.multilingual.multilingual_data_manager import MultilingualDatasetManager
from fairseq.tasks.translation import load_langpair_dataset
from streams.folders import dictionary_of, write_alignments, write_pair

from fairseq_ext.compat.data.data_files import UnreadableFile

TEXT = {"xx": ["xx1 xx2 xx3", "xx4", "xx5 xx6"], "yy": ["yy1 yy2", "yy3 yy4", "yy5"]}
PAIRS = [[(0, 1), (2, 0)], [(0, 0), (0, 1)], []]
REVERSED = [[(target, source) for source, target in pairs] for pairs in PAIRS]


@pytest.fixture
def folder(tmp_path):
    write_pair(tmp_path, "train", "xx-yy", **TEXT)
    write_alignments(tmp_path, "train", "xx-yy", PAIRS)
    return tmp_path


def loaded(folder, pair="xx-yy", split="train", combine=False, upsample=-1, **options):
    source, target = pair.split("-")
    files = (str(folder), split, source, dictionary_of(source), target, dictionary_of(target))
    options = {"load_alignments": True, **options}
    return load_langpair_dataset(*files, combine, "mmap", upsample, False, False, 99, 99, **options)


def alignments(dataset):
    if dataset.align_dataset is None:
        return None
    rows = [dataset[number]["alignment"].view(-1, 2).tolist() for number in range(len(dataset))]
    return [[tuple(pair) for pair in row] for row in rows]


def test_both_directions_are_aligned(folder):
    assert alignments(loaded(folder)) == PAIRS
    assert alignments(loaded(folder, "yy-xx")) == REVERSED
    assert loaded(folder, "yy-xx", load_alignments=False).align_dataset is None
    batch = loaded(folder, "yy-xx")
    batch = batch.collater([batch[number] for number in range(3)])
    # rows of the target have 4 places
    assert sorted(batch["alignments"].tolist()) == [[0, 2], [0, 4], [1, 0], [1, 4]]


def test_sentences_of_a_file_of_their_own_have_no_alignments_of_the_other(folder, caplog):
    write_pair(folder, "train", "yy-xx", xx=TEXT["xx"][::-1], yy=TEXT["yy"][::-1])
    caplog.set_level(logging.WARNING)
    assert alignments(loaded(folder, "yy-xx")) is None
    assert "--load-alignments: no " in caplog.text and "train.align.yy-xx;" in caplog.text
    write_alignments(folder, "train", "yy-xx", REVERSED[::-1])
    assert alignments(loaded(folder, "yy-xx")) == REVERSED[::-1]


def test_all_parts_are_aligned(folder):
    write_pair(folder, "train1", "xx-yy", xx=TEXT["xx"][1:], yy=TEXT["yy"][1:])
    with pytest.raises(UnreadableFile, match="train1.align.xx-yy have 3 lines; allowed: 5, as"):
        loaded(folder, combine=True)
    write_alignments(folder, "train1", "xx-yy", PAIRS[1:])
    assert alignments(loaded(folder, combine=True)) == PAIRS + PAIRS[1:]
    assert alignments(loaded(folder, combine=True, upsample=2)) == 2 * PAIRS + PAIRS[1:]
    assert alignments(loaded(folder, "yy-xx", combine=True)) == REVERSED + REVERSED[1:]
    assert alignments(loaded(folder)) == PAIRS


def test_symbols_in_front_are_no_words(folder):
    shifted = [[(source + 1, target + 1) for source, target in pairs] for pairs in PAIRS]
    assert alignments(loaded(folder, prepend_bos=True)) == shifted


def test_alignments_of_other_sentences_are_refused(folder):
    write_alignments(folder, "train", "xx-yy", PAIRS[1:])
    with pytest.raises(UnreadableFile, match="train.align.xx-yy have 2 lines; allowed: 3, as many"):
        loaded(folder, "yy-xx")


@pytest.mark.parametrize("pair, expected", [("xx-yy", PAIRS), ("yy-xx", REVERSED)])
@pytest.mark.parametrize("shared", [None, {}])
def test_translation_multi_simple_epoch(folder, pair, expected, shared):
    source, target = pair.split("-")
    manager = MultilingualDatasetManager.__new__(MultilingualDatasetManager)
    manager.args = Namespace(train_subset="train")
    files = (str(folder), "train", source, dictionary_of(source), target, dictionary_of(target))
    dataset = manager.load_langpair_dataset(
        *(*files, False, "mmap", 1, False, False, 99, 99),
        load_alignments=True,
        # as --encoder-langtok tgt
        src_dataset_transform_func=lambda lines: PrependTokenDataset(lines, 5),
        langpairs_sharing_datasets=shared,
    )
    assert alignments(dataset) == [[(i + 1, j) for i, j in pairs] for pairs in expected]
