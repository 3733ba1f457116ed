"""--schedule joint: the same sentences share batches, a direction's own data have their own."""

import collections

import numpy as np
import pytest
from common import inprocess
from fairseq import options, tasks
from streams.folders import random_lines, write_pair

from fairseq_ext.streams import sentence_sets

ARCHS = {
    "dual_translation": "dual_transformer_tiny",
    "multiway_translation": "multiway_gru",
    "routed_mtl": "routed_gru",
}


def sides(count, seed=0, lengths=(2, 7)):
    """Lines of both languages."""
    return {lang: random_lines(lang, count, seed, lengths) for lang in ("xx", "yy")}


def made(data, *flags, task="dual_translation", pairs="xx-yy,yy-xx"):
    """The task of a run under joint."""
    words = [data, "--task", task, "--arch", ARCHS[task], "--lang-pairs", pairs]
    words += ["--schedule", "joint", "--optimizer", "adam", *flags]
    cfg = inprocess.configuration(options.get_training_parser(), words)
    return tasks.setup_task(cfg.task)


def epoch_of(task, epoch=1, **sizes):
    """The batches of an epoch as [{pair: sample}]."""
    task.load_dataset("train", epoch=epoch, combine=True)
    sizes = {"max_positions": (1024, 1024), "ignore_invalid_inputs": True, **sizes}
    iterator = task.get_batch_iterator(
        task.dataset("train"), seed=1, epoch=epoch, disable_iterator_cache=True, **sizes
    )
    return list(iterator.next_epoch_itr())


def ids(batches, pair):
    """{sentence number: how often it is in the batches}."""
    return collections.Counter(
        number for batch in batches if pair in batch for number in batch[pair]["id"].tolist()
    )


@pytest.mark.parametrize(
    "task, counts",
    [
        ("dual_translation", (30, 18)),
        ("dual_translation", (18, 30)),
        ("multiway_translation", (24, 24)),
        ("routed_mtl", (24, 24)),
    ],
)
def test_a_direction_with_its_own_data_trains_on_all_of_it(task, counts, tmp_path):
    """Shorter, longer and equally many: every sentence, words and all, and nobody else's."""
    texts = {"xx-yy": sides(counts[0], 1, (2, 3)), "yy-xx": sides(counts[1], 2, (9, 12))}
    for pair, lines in texts.items():
        write_pair(tmp_path, "train", pair, **lines)
    task = made(tmp_path, task=task)
    batches = epoch_of(task, max_tokens=60)
    for pair, lines in texts.items():
        seen = ids(batches, pair)
        assert set(seen) == set(range(len(lines["xx"])))
        target = pair.split("-")[1]
        for batch in batches:
            part = batch[pair]
            for number, tokens in zip(part["id"].tolist(), part["target"]):
                words = task.dictionaries[target].string(tokens[tokens != 1])
                assert words == lines[target][number]
            sizes = part["net_input"]["src_tokens"].numel(), part["target"].numel()
            assert max(sizes) <= 60


@pytest.mark.parametrize(
    "task, twice",
    [("dual_translation", False), ("multiway_translation", True), ("routed_mtl", True)],
)
def test_the_same_sentences_share_batches(task, twice, tmp_path):
    lines = sides(30)
    write_pair(tmp_path, "train", "xx-yy", **lines)
    if twice:
        write_pair(tmp_path, "train", "yy-xx", **lines)
    batches = epoch_of(made(tmp_path, task=task), max_sentences=4)
    for batch in batches:
        assert ids([batch], "xx-yy") == ids([batch], "yy-xx")
    assert ids(batches, "xx-yy") == collections.Counter(range(30))


@pytest.mark.parametrize("changed", ["xx", "yy"])
def test_one_other_word_is_another_text(changed, tmp_path):
    """Sizes are equal: the words are compared."""
    lines = sides(12)
    other = {lang: list(text) for lang, text in lines.items()}
    words = other[changed][7].split()
    words[0] = f"{changed}{(int(words[0][2:]) + 1) % 16}"
    other[changed][7] = " ".join(words)
    write_pair(tmp_path, "train", "xx-yy", **lines)
    write_pair(tmp_path, "train", "yy-xx", **other)
    task = made(tmp_path)
    task.load_dataset("train", combine=True)
    assert task.dataset("train").sets == {"xx-yy": "xx-yy", "yy-xx": "yy-xx"}


def test_files_of_one_direction_are_not_read(tmp_path, monkeypatch):
    write_pair(tmp_path, "train", "xx-yy", **sides(5))

    def read(*files, **_):
        raise AssertionError(f"{files} compared")

    monkeypatch.setattr(sentence_sets.filecmp, "cmp", read)
    task = made(tmp_path)
    task.load_dataset("train", combine=True)
    assert task.dataset("train").sets == {"xx-yy": "xx-yy", "yy-xx": "xx-yy"}


def test_parts_of_a_split_are_compared_one_by_one(tmp_path):
    """train1 holds back-translations of one direction: the whole is not the same."""
    write_pair(tmp_path, "train", "xx-yy", **sides(10, 1))
    write_pair(tmp_path, "train1", "xx-yy", **sides(6, 2))
    task = made(tmp_path, "--upsample-primary", 2)
    batches = epoch_of(task, max_sentences=3)
    assert set(ids(batches, "yy-xx")) == set(range(26))
    assert all(ids([batch], "xx-yy") == ids([batch], "yy-xx") for batch in batches)
    write_pair(tmp_path, "train1", "yy-xx", **sides(9, 3))
    batches = epoch_of(made(tmp_path, "--upsample-primary", 2), max_sentences=3)
    assert set(ids(batches, "xx-yy")) == set(range(26))
    assert set(ids(batches, "yy-xx")) == set(range(29))


def test_each_epoch_asks_for_the_shard_that_it_has(tmp_path):
    """In the first shard the directions are the same text, in the second they are not."""
    first, second = tmp_path / "first", tmp_path / "second"
    write_pair(first, "train", "xx-yy", **sides(10, 1))
    write_pair(second, "train", "xx-yy", **sides(8, 2))
    write_pair(second, "train", "yy-xx", **sides(14, 3))
    task = made(f"{first}:{second}")
    numbers = []
    for epoch in (1, 2, 3):
        batches = epoch_of(task, epoch, max_sentences=3)
        numbers.append((len(ids(batches, "xx-yy")), len(ids(batches, "yy-xx"))))
    assert numbers == [(10, 10), (8, 14), (10, 10)]


@pytest.mark.parametrize("task", ["dual_translation", "routed_mtl"])
def test_shared_batches_fit_both_directions(task, tmp_path):
    """--truncate-source cuts another side in each direction, and a token may begin the source."""
    write_pair(tmp_path, "train", "xx-yy", **sides(40, lengths=(1, 11)))
    flags = ["--truncate-source", "--max-source-positions", 6, "--max-target-positions", 9]
    task = made(tmp_path, *flags, task=task)
    batches = epoch_of(task, max_tokens=30, max_positions=(6, 9))
    assert batches
    for batch in batches:
        assert ids([batch], "xx-yy") == ids([batch], "yy-xx")
        for part in batch.values():
            tokens = part["net_input"]["src_tokens"], part["target"]
            assert tokens[0].size(1) <= 6 and tokens[1].size(1) <= 9
            assert max(side.numel() for side in tokens) <= 30
    lengths = [
        part["net_input"]["src_lengths"].max().item() for b in batches for part in b.values()
    ]
    assert max(lengths) == 6


def test_buckets_of_both_directions(tmp_path):
    """--num-batch-buckets with --truncate-source: lengths of either direction are allowed."""
    write_pair(tmp_path, "train", "xx-yy", **sides(40, lengths=(1, 11)))
    flags = ["--truncate-source", "--max-source-positions", 6, "--num-batch-buckets", 3]
    flags += ["--max-tokens", 30]
    batches = epoch_of(made(tmp_path, *flags), max_tokens=30)
    assert ids(batches, "xx-yy") == ids(batches, "yy-xx") == collections.Counter(range(40))
    for batch in batches:
        for part in batch.values():
            assert max(part["net_input"]["src_tokens"].numel(), part["target"].numel()) <= 30


def test_validation_keeps_the_limits_of_each_direction(tmp_path):
    for split in ("train", "valid"):
        write_pair(tmp_path, split, "xx-yy", **sides(40, lengths=(1, 11)))
    task = made(tmp_path)
    task.load_dataset("valid")
    iterator = task.get_batch_iterator(
        task.dataset("valid"), max_sentences=5, max_positions=(12, 6), ignore_invalid_inputs=True
    )
    seen = ids(list(iterator.next_epoch_itr(shuffle=False)), "yy-xx")
    part = task.dataset("valid").datasets["yy-xx"]
    expected = (part.src_sizes <= 12) & (part.tgt_sizes <= 6)
    assert sorted(seen) == np.flatnonzero(expected).tolist()


def test_supervised_duality_asks_for_the_same_words(tmp_path):
    """Two texts of equal lengths are not taken for one."""
    for pair, seed in (("xx-yy", 1), ("yy-xx", 2)):
        write_pair(tmp_path, "train", pair, **sides(8, seed, (4, 4)))
    task = made(tmp_path)
    task.couple_directions()
    with pytest.raises(ValueError, match="train of xx-yy and of yy-xx: other sentences"):
        task.load_dataset("train", combine=True)
