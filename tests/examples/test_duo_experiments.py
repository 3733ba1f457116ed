"""The experiments of examples/duo: rows of equal size, couples of vectors, from text to tables."""

import csv
import json
import random
import shlex
import sys
from pathlib import Path

import pytest
from experiments.definition import FOLDER, read_experiment
from experiments.execution import Run

PARSE_AND_BUILD = Path(__file__).with_name("parse_and_build.py")
ROWS = ("transformer", "meta", "share", "norm", "fusion", "transformer_long", "fusion_long")
CLASSIFIERS = ("single.own", "duo.glove+own", "average.glove+w2v", "concatenation.own+w2v")
SMALL = """
like = "multi30k"
[variables]
TEST_FILE = "test_a"
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
def built(tmp_path_factory, run):
    """{system: what parse_and_build.py says of its training command}."""
    data = tmp_path_factory.mktemp("duo")
    (data / "bin").mkdir()
    (data / "vectors").mkdir()
    entries = "".join(f"w{number} 9\n" for number in range(2000))
    for name in ("de", "en", "text", "label"):
        (data / "bin" / f"dict.{name}.txt").write_text(entries, encoding="utf-8")
    commands = {f"{row}.de-en": words_of("multi30k", f"{row}.de-en", data) for row in ROWS}
    output = run(
        "python", PARSE_AND_BUILD, stdin=json.dumps(list(commands.values())), cwd=FOLDER.parent
    )
    line = next(line for line in output.splitlines() if line.startswith("RESULT "))
    return dict(zip(ROWS, json.loads(line[len("RESULT ") :])))


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
    made, trained = vectors.lines("train")
    assert "--width 128" in made and shlex.split(made)[-1] in shlex.split(trained)


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


def report_of(folder):
    with open(folder / "report.csv", encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


@pytest.fixture
def perform(run, tmp_path):
    """Function (content of a file, raw data, systems) -> lines of the report of all of them."""

    def from_raw_data(content, raw, systems):
        for path in (FOLDER / "duo").glob("*.toml"):
            (tmp_path / path.name).write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
        small = tmp_path / "small.toml"
        small.write_text(content, encoding="utf-8")
        folders = ("--data", tmp_path / "data", "--runs", tmp_path / "my runs")
        script = (sys.executable, FOLDER / "run.py", small)
        assert "ready:" in run(*script, "prepare", "--raw", raw, *folders, cwd=tmp_path)
        for system in systems:
            assert "done:" in run(*script, system, 1, *folders, cwd=tmp_path)
        run(*script, "report", 1, *folders, cwd=tmp_path)
        return report_of(tmp_path / "my runs")

    return from_raw_data


@pytest.mark.slow
@pytest.mark.timeout(3600)  # many commands, each of which imports fairseq
def test_translation_from_raw_text_to_tables(perform, raw):
    lines = perform(SMALL, raw, ["transformer.de-en", "fusion.de-en"])
    values = {
        (line["system"], line["versus"], line["set"], line["metric"], line["epoch"]): line
        for line in lines
    }
    assert values["+ fusion layer", "Transformer", "test_a", "BLEU", ""]["p"]
    assert values["Transformer", "", "", "BLEU in Table 6 of the paper", ""]["value"] == "27.31"
    curve = [key for key in values if key[3] == "BLEU, greedy" and key[0] == "Transformer"]
    assert len(curve) == 2
    last = values["Transformer", "", "val", "perplexity", ""]["value"]
    assert last == values["Transformer", "", "val", "perplexity", curve[-1][4]]["value"]
    assert values["+ fusion layer", "", "", "parameters used", ""]["value"]


@pytest.mark.slow
@pytest.mark.timeout(3600)  # many commands, each of which imports fairseq
def test_classification_from_raw_text_to_tables(perform, tmp_path):
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
    content = 'like = "r8"\n[variables]\nLENGTH = "--max-epoch 20 --lr 0.02"\n'
    systems = ["single.glove", "single.w2v", "average.glove+w2v", "duo.*w2v", "better*w2v", "tfidf"]
    lines = [line for line in perform(content, raw, systems) if line["metric"] == "accuracy"]
    values = {
        (line["system"], line["versus"], line["first set"], line["second set"]): line
        for line in lines
        if line["set"] == "test"
    }
    knows, not_ = (float(values["one set", "", name, name]["value"]) for name in ("glove", "w2v"))
    assert knows > not_
    assert float(values["better set alone", "", "glove", "w2v"]["value"]) == knows
    assert float(values["TF-IDF, logistic regression", "", "", ""]["value"]) == 100
    assert values["duo", "better set alone", "glove", "w2v"]["p"]
    assert not list((tmp_path / "my runs").glob("*/*.pt"))
