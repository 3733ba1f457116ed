"""fairseq-preprocess --alignfile writes the most frequent translation of each word, once."""

import collections
import random

import pytest
from fairseq import options, utils
from fairseq_cli import preprocess

WORDS = 6


@pytest.fixture
def corpus(tmp_path):
    """Function (line numbers, ...) -> folder of train.xx, train.yy, train.align."""
    rng = random.Random(3)
    pairs = []
    for _ in range(60):
        source = [f"x{rng.randrange(WORDS)}" for _ in range(rng.randint(1, 5))]
        # a word's own translation most of the time, and any other one
        target = [f"y{word[1]}" if rng.random() < 0.6 else "y0" for word in source]
        pairs.append((source, target, [f"{i}-{i}" for i in range(len(source))]))
    for column, name in enumerate(("xx", "yy", "align")):
        lines = "".join(" ".join(pair[column]) + "\n" for pair in pairs)
        (tmp_path / f"train.{name}").write_text(lines, encoding="utf-8")
    return tmp_path, pairs


@pytest.mark.parametrize("more", [[], ["--joined-dictionary"], ["--thresholdsrc", "25"]])
def test_the_most_frequent_translation_wins(more, corpus, tmp_path):
    folder, pairs = corpus
    words = ["-s", "xx", "-t", "yy", "--trainpref", f"{folder}/train", "--destdir"]
    words += [f"{tmp_path}/data", "--alignfile", f"{folder}/train.align", *more]
    preprocess.main(options.get_preprocessing_parser().parse_args(words))
    translations = collections.defaultdict(collections.Counter)
    for source, target, _ in pairs:
        for word, other in zip(source, target):
            translations[word][other] += 1
    if "--thresholdsrc" in more:  # rarer words are unknown ones
        assert any(sum(counts.values()) < 25 for counts in translations.values())
    frequent = {
        word: counts
        for word, counts in translations.items()
        if "--thresholdsrc" not in more or sum(counts.values()) >= 25
    }
    path = tmp_path / "data" / "alignment.xx-yy.txt"
    lines = path.read_text(encoding="utf-8").splitlines()
    assert len(lines) == len(frequent)
    table = utils.load_align_dict(str(path))  # as --replace-unk does
    assert table.keys() == frequent.keys()
    for word, counts in frequent.items():
        assert counts[table[word]] == max(counts.values())
