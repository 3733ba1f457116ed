"""The experiments of examples/duo: rows of equal size, couples of vectors, from text to tables."""

import json
import random
import shlex
from pathlib import Path

import pytest
from examples.parse_and_build import build
from experiments.definition import read_experiment
from experiments.execution import Run
from small_experiment import SmallExperiment, values_of

ROWS = ("transformer", "meta", "share", "norm", "fusion", "transformer_long", "fusion_long")
CLASSIFIERS = ("single.own", "duo.glove+own", "average.glove+w2v", "concatenation.own+w2v")
SMALL = """
VOCABULARY = 60
WIDTH = 16
STOCK_SIZES = "--encoder-layers 1 --decoder-layers 1"
LENGTH = "--max-update 8 --validate-interval-updates 4 --save-interval-updates 4"
MAX_TOKENS = 400
SEARCH = "--beam 2 --max-tokens 400"
"""


def words_of(name, system, data):
    """The words of a system's command of fairseq-train."""
    run = Run(read_experiment(f"duo/{name}").system(system), 1, data, data / "runs")
    (line,) = (line for line in run.lines("train") if line.startswith("fairseq-train"))
    return shlex.split(line)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """{system: what comes out of its training command}."""
    data = tmp_path_factory.mktemp("duo")
    (data / "bin").mkdir()
    (data / "vectors").mkdir()
    entries = "".join(f"w{number} 9\n" for number in range(2000))
    for name in ("de", "en", "text", "label"):
        (data / "bin" / f"dict.{name}.txt").write_text(entries, encoding="utf-8")
    return {row: build(words_of("multi30k", f"{row}.de-en", data)) for row in ROWS}


def test_rows_have_the_same_number_of_parameters(built):
    counts = {row: result["parameters"] for row, result in built.items()}
    assert max(counts.values()) < 1.01 * min(counts.values()), counts
    assert counts["fusion_long"] == counts["fusion"]


def test_rows_are_trained_alike(built):
    for key in ("task", "dropout", "max_tokens", "lr", "betas", "smoothing", "clip_norm"):
        assert len({json.dumps(result[key]) for result in built.values()}) == 1, key
    updates = {row: result["max_update"] for row, result in built.items()}
    assert updates == {row: 6000 if row.endswith("_long") else 2000 for row in ROWS}


def test_each_row_has_the_additions_of_those_above_it(tmp_path):
    off = {
        row: {word for word in words_of("multi30k", f"{row}.en-de", tmp_path) if "--duo" in word}
        for row in ROWS
    }
    assert off["meta"] == {"--duo-share-kv", "--duo-norm", "--duo-fusion"}
    assert off["share"] == {"--duo-norm", "--duo-fusion"} and off["norm"] == {"--duo-fusion"}
    assert off["fusion"] == off["fusion_long"] == off["transformer"] == set()
    vectors = Run(read_experiment("duo/multi30k").system("vectors.en-de"), 1, tmp_path, tmp_path)
    making, trained = vectors.lines("train")
    assert "--width 128" in making and shlex.split(making)[-1] in shlex.split(trained)


@pytest.mark.parametrize("name", ["mr", "r8", "imdb"])
def test_classifiers_differ_in_method_and_vectors_only(name, tmp_path):
    commands = {system: words_of(name, system, tmp_path) for system in CLASSIFIERS}
    rest = {
        tuple(
            word
            for place, word in enumerate(words)
            if not {"--arch", "--save-dir", "--embed-path-s", "--embed-path-p"}
            & {word, words[place - 1]}
        )
        for words in commands.values()
    }
    assert len(rest) == 1
    single, couple = commands["single.own"], commands["duo.glove+own"]
    assert "duo_classifier_single" in single and "--embed-path-p" not in single
    files = [couple[couple.index(f"--embed-path-{side}") + 1] for side in "sp"]
    assert [Path(file).name for file in files] == ["glove.vec", "own.vec"]
    assert "duo_classifier_concatenation" in commands["concatenation.own+w2v"]


@pytest.mark.slow
@pytest.mark.timeout(3600)  # many commands, each of which imports fairseq
def test_translation_from_raw_text_to_the_page(run, raw, tmp_path):
    for path in list(raw.glob("test_a.*")):
        path.rename(raw / f"test_2016_flickr{path.suffix}")
    small = SmallExperiment(run, tmp_path, "duo/multi30k", SMALL)
    assert "ready:" in small.step("prepare", "--raw", raw)
    small.train("transformer.*", "fusion.*")
    lines = small.report()
    both = ("+ fusion layer", "Transformer")
    for direction in ("de-en", "en-de"):
        fields = {"set": "test_2016_flickr", "direction": direction}
        assert both in values_of(lines, "BLEU", **fields)
    paper = values_of(lines, "BLEU in Table 6 of the paper")
    assert paper["Transformer", ""] == 27.31 and paper["+ duo normalisation", ""] == 29.6
    greedy = [line for line in lines if line["metric"] == "BLEU, greedy" and not line["versus"]]
    assert len(greedy) == 2 * 2 * 2
    small.check_page("duo.md")


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_classification_from_raw_text_to_the_page(run, tmp_path):
    """A word decides, and one of the sets of vectors knows it."""
    pytest.importorskip("gensim", reason="the set of own vectors needs gensim")
    pytest.importorskip("sklearn", reason="TF-IDF needs scikit-learn")
    raw, rng = tmp_path / "raw", random.Random(1)
    raw.mkdir()
    for split, size in (("train", 300), ("test", 40)):
        rows = []
        for number in range(size):
            label = ("bad", "good")[number % 2]
            noise = [f"w{rng.randrange(20)}" for _ in range(5)]
            rows.append(f"{label}\t{' '.join(noise)} is{label}\n")
        (raw / f"{split}.txt").write_text("".join(rows), encoding="utf-8")
    (raw / "glove.vec").write_text("isgood 1 0\nisbad 0 1\n", encoding="utf-8")
    (raw / "w2v.vec").write_text("w1 1 0\nw2 0 1\n", encoding="utf-8")
    small = SmallExperiment(run, tmp_path, "duo/r8", 'LENGTH = "--max-epoch 20 --lr 0.02"\n')
    assert "ready:" in small.step("prepare", "--raw", raw)
    small.train("single.[gw]*", "average.glove+w2v", "duo.*w2v", "better.glove+w2v", "tfidf")
    lines = small.report()
    alone = {
        name: values_of(lines, "accuracy", set="test", **{"first set": name, "second set": name})
        for name in ("glove", "w2v")
    }
    assert alone["glove"]["one set", ""] > alone["w2v"]["one set", ""]
    couple = values_of(lines, "accuracy", set="test", **{"first set": "glove", "second set": "w2v"})
    assert couple["better set alone", ""] == alone["glove"]["one set", ""]
    assert {("duo", "better set alone"), ("duo", "average")} <= set(couple)
    words = values_of(lines, "accuracy", set="test", **{"first set": ""})
    assert words == {("TF-IDF, logistic regression", ""): 100}
    assert not list(small.runs.glob("*/*.pt"))
    small.check_page("duo.md")
