"""Dictionaries and sentences of a pair, and the errors that name what is missing."""

import pytest
from streams.folders import dictionary_of, random_lines, write_alignments, write_pair

from fairseq_ext.streams.config import StreamsConfig
from fairseq_ext.streams.pair_data import load_dictionary, load_pair

TEXT = {"xx": random_lines("xx", 6), "yy": random_lines("yy", 6)}


def loaded(folder, pair="xx-yy", split="train", can_lack_targets=False, **options):
    cfg = StreamsConfig(upsample_primary=1, left_pad_source=False, left_pad_target=False)
    cfg.train_subset, cfg.load_alignments = "train", options.get("load_alignments", False)
    cfg.dataset_impl, cfg.num_batch_buckets, cfg.required_seq_len_multiple = "mmap", 0, 1
    dictionaries = {lang: dictionary_of(lang) for lang in ("xx", "yy")}
    return load_pair(
        cfg, dictionaries, str(folder), split, pair, False, can_lack_targets, max_source_tokens=9
    )


def test_a_dictionary_comes_from_the_first_folder(tmp_path):
    write_pair(tmp_path, "train", "xx-yy")
    paths = [str(tmp_path), "elsewhere"]
    assert load_dictionary(paths, "xx").symbols == dictionary_of("xx").symbols
    with pytest.raises(ValueError, match="dict.zz.txt: no dictionary for language 'zz'"):
        load_dictionary(paths, "zz")


def test_files_of_one_direction_serve_both(tmp_path):
    write_pair(tmp_path, "train", "xx-yy", **TEXT)
    there, back = loaded(tmp_path), loaded(tmp_path, "yy-xx")
    assert len(there) == len(back) == 6
    for number in range(6):
        assert there[number]["source"].tolist() == back[number]["target"].tolist()
        assert there[number]["target"].tolist() == back[number]["source"].tolist()


def test_alignments_of_one_direction_serve_both(tmp_path):
    write_pair(tmp_path, "train", "xx-yy", **TEXT)
    write_alignments(tmp_path, "train", "xx-yy", [[(number, 1), (0, 1)] for number in range(6)])
    there, back = (loaded(tmp_path, pair, load_alignments=True) for pair in ("xx-yy", "yy-xx"))
    for number in range(6):
        assert there[number]["alignment"].tolist() == [number, 1, 0, 1]
        assert back[number]["alignment"].tolist() == [1, number, 1, 0]


def test_missing_files_are_named(tmp_path):
    write_pair(tmp_path, "train", "xx-yy", **TEXT)
    message = "no valid.xx-yy or valid.yy-xx for the pair xx-yy"
    with pytest.raises(FileNotFoundError, match=message):
        loaded(tmp_path, split="valid")


def test_sentences_that_are_text_are_named(tmp_path):
    for name in ("valid.yy-xx.xx", "valid.yy-xx.yy", "valid.xx-zz.xx"):
        (tmp_path / name).write_text("a\n", encoding="utf-8")
    message = "for the pair xx-yy; valid.yy-xx.xx is there as text, which --dataset-impl raw reads"
    with pytest.raises(FileNotFoundError, match=message):
        loaded(tmp_path, split="valid")


def test_an_empty_split_is_named(tmp_path):
    write_pair(tmp_path, "train", "xx-yy", xx=[], yy=[])
    with pytest.raises(ValueError, match="train of the pair xx-yy holds no sentence"):
        loaded(tmp_path)


def test_only_inference_does_without_targets(tmp_path):
    write_pair(tmp_path, "train", "xx-yy", xx=TEXT["xx"])
    assert len(loaded(tmp_path, can_lack_targets=True)) == 6
    with pytest.raises(FileNotFoundError, match="train of the pair xx-yy has no sentences of yy"):
        loaded(tmp_path)
