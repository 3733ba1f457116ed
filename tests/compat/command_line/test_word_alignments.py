"""fairseq-preprocess: alignments of every set, and the most frequent translation of each word."""

import collections
import random

import pytest
from fairseq import options, utils
from fairseq.data import data_utils
from fairseq_cli import preprocess

from fairseq_ext.compat.data.data_files import UnreadableFile
from fairseq_ext.compat.user_errors import OptionError

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


def preprocessed(folder, *words):
    """Make the data folder FOLDER/data of the training texts and of what the words name."""
    words = ["--trainpref", folder / "train", "--destdir", folder / "data", *words]
    parser = options.get_preprocessing_parser()
    preprocess.main(parser.parse_args(["-s", "xx", "-t", "yy", *map(str, words)]))


@pytest.mark.parametrize("more", [[], ["--joined-dictionary"], ["--thresholdsrc", "25"]])
def test_the_most_frequent_translation_wins(more, corpus):
    folder, pairs = corpus
    preprocessed(folder, "--alignfile", folder / "train.align", *more)
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
    path = folder / "data" / "alignment.xx-yy.txt"
    lines = path.read_text(encoding="utf-8").splitlines()
    assert len(lines) == len(frequent)
    table = utils.load_align_dict(str(path))  # as --replace-unk does
    assert table.keys() == frequent.keys()
    for word, counts in frequent.items():
        assert counts[table[word]] == max(counts.values())


def test_every_set_has_its_alignments(corpus):
    folder, _ = corpus
    sets = {"a": "0-0", "b": "0-1 1-0", "c": None, "d": "1-1"}
    for name, line in sets.items():
        (folder / f"{name}.xx").write_text("x1 x2\n")
        (folder / f"{name}.yy").write_text("y1 y2\n")
        if line:
            (folder / f"{name}.align").write_text(f"{line}\n")
    lists = [",".join(f"{folder}/{name}" for name in names) for names in ("ab", "cd")]
    preprocessed(folder, "--validpref", lists[0], "--testpref", lists[1], "--align-suffix", "align")

    def stored(name):
        path = f"{folder}/data/{name}.align.xx-yy"
        dataset = data_utils.load_indexed_dataset(path, None, None)
        return dataset and dataset[0].tolist()

    assert [stored(name) for name in ("valid", "valid1", "test", "test1")] == [
        [0, 0], [0, 1, 1, 0], None, [1, 1],
    ]  # fmt: skip
    assert (
        len(data_utils.load_indexed_dataset(f"{folder}/data/train.align.xx-yy", None, None)) == 60
    )


@pytest.mark.parametrize("option", ["--alignfile", "--align-suffix"])
@pytest.mark.parametrize(
    "content, message",
    [
        (
            "0-0\n0:1\n",
            "line 2: '0:1'; allowed: I-J, where I counts the 1 words of the source and J",
        ),
        ("0-0\n1-0\n", "line 2: '1-0'"),
        ("0-0\n0-2\n", "line 2: '0-2'"),
        ("0-0\n", "line 2: .*wrong has no such line"),
        ("0-0\n0-1\n\n", "line 3: .*train.xx has no such line"),
    ],
)
def test_alignments_of_other_texts_are_refused(option, content, message, tmp_path):
    (tmp_path / "train.xx").write_text("x1 x2\nx1\n")
    (tmp_path / "train.yy").write_text("y1\ny1 y2\n")
    path = tmp_path / "train.wrong"
    path.write_text(content)
    with pytest.raises(UnreadableFile, match=f"{path}, {message}"):
        preprocessed(tmp_path, option, "wrong" if option == "--align-suffix" else path)
    assert not (tmp_path / "data").exists()


def test_alignments_that_are_of_nothing(corpus):
    folder, _ = corpus
    with pytest.raises(
        OptionError, match="--align-suffix algin: no set has .* such as .*train.algin"
    ):
        preprocessed(folder, "--align-suffix", "algin")
