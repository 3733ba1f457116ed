"""Dictionaries and sentences of a pair, and the errors that name what is missing."""

import pytest
from streams.folders import dictionary_of, random_lines, write_alignments, write_pair

from fairseq_ext.streams.config import StreamsConfig
from fairseq_ext.streams.pair_data import load_dictionary, load_pair

TEXT = {"xx": random_lines("xx", 6), "yy": random_lines("yy", 6)}


def loaded(folder, pair="xx-yy", split="train", can_lack_targets=False, combine=False, **options):
    cfg = StreamsConfig(upsample_primary=1, left_pad_source=False, left_pad_target=False)
    cfg.train_subset, cfg.dataset_impl = "train", "mmap"
    cfg.num_batch_buckets, cfg.required_seq_len_multiple = 0, 1
    for name, value in options.items():
        setattr(cfg, name, value)
    dictionaries = {lang: dictionary_of(lang) for lang in ("xx", "yy")}
    return load_pair(
        cfg, dictionaries, str(folder), split, pair, combine, can_lack_targets, max_source_tokens=9
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
    message = (
        "for the pair xx-yy .*; valid.yy-xx.xx is there as text, which --dataset-impl raw reads"
    )
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


def test_the_training_set_alone_is_repeated(tmp_path):
    """--upsample-primary: train twice beside train1; valid and valid1 once each."""
    counts = {}
    for split in ("train", "valid"):
        for number, count in (("", 6), ("1", 2)):
            lines = {lang: random_lines(lang, count) for lang in ("xx", "yy")}
            write_pair(tmp_path, f"{split}{number}", "xx-yy", **lines)
        counts[split] = len(loaded(tmp_path, split=split, combine=True, upsample_primary=2))
    assert counts == {"train": 2 * 6 + 2, "valid": 6 + 2}
    assert len(loaded(tmp_path, upsample_primary=2)) == 6  # train1 is not asked for


@pytest.mark.parametrize("left", [False, True])
def test_sources_are_cut_and_batches_padded_as_the_options_say(tmp_path, left):
    """Nine tokens at most, the end symbol one of them; every length a multiple of four."""
    sides = {lang: [" ".join([f"{lang}3"] * 12), f"{lang}1"] for lang in ("xx", "yy")}
    write_pair(tmp_path, "train", "xx-yy", **sides)
    dataset = loaded(
        tmp_path, truncate_source=True, left_pad_source=left, required_seq_len_multiple=4
    )
    dictionary = dictionary_of("xx")
    assert dataset[0]["source"].tolist() == [dictionary.index("xx3")] * 8 + [dictionary.eos()]
    assert dataset.tgt_sizes.tolist() == [13, 2]
    batch = dataset.collater([dataset[number] for number in range(2)])
    source, target = batch["net_input"]["src_tokens"], batch["target"]
    assert source.size(1) == 12 and target.size(1) == 16
    words, padding = [False] * 2, [True] * 10
    expected = padding + words if left else words + padding
    assert source[1].eq(dictionary.pad()).tolist() == expected
    assert target[1].eq(dictionary.pad()).tolist() == [False] * 2 + [True] * 14


def test_all_but_the_test_set_are_shuffled(tmp_path):
    for split in ("train", "valid", "test"):
        write_pair(tmp_path, split, "xx-yy", **TEXT)
        assert loaded(tmp_path, split=split).shuffle == (split != "test")


def test_lengths_fall_into_buckets(tmp_path):
    write_pair(tmp_path, "train", "xx-yy", **TEXT)
    assert loaded(tmp_path).buckets is None
    shapes = loaded(tmp_path, num_batch_buckets=2).get_batch_shapes()
    assert len(shapes) == 2


def test_text_is_read_with_the_words_of_its_language(tmp_path):
    """--dataset-impl raw; the files of xx-yy serve yy-xx."""
    for lang, lines in TEXT.items():
        (tmp_path / f"train.xx-yy.{lang}").write_text("\n".join(lines) + "\n", encoding="utf-8")
    dataset = loaded(tmp_path, "yy-xx", dataset_impl="raw")
    for side, lang in (("source", "yy"), ("target", "xx")):
        words = dictionary_of(lang)
        assert [words.string(dataset[number][side]) for number in range(6)] == TEXT[lang]
