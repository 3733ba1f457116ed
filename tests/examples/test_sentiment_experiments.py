"""The experiments of examples/sentiment: systems differ in what they say, and go to tables."""

import shlex

import pytest
from examples.parse_and_build import build
from examples.test_corpora_reviews import random_reviews, write_archive
from experiments.definition import FOLDER, read_experiment
from experiments.execution import Run
from small_experiment import SmallExperiment, values_of

EXPERIMENTS = ("imdb", "imdb_paper")
BUILT = ("dual", "dual.dsl", "dsl", "classifier", "generator", "lm.text")
SMALL = """
VALID = 8
WORDS = "--words 9"
VOCABULARY = 34
SIZES = "--embed-dim 8 --hidden-size 8 --dropout 0.3"
BATCH = "--batch-size 8"
PATIENCE = "--patience 3 --validate-interval-updates 3 --save-interval-updates 3"
FIRST = "--optimizer adam --lr 2e-3 --max-update 6 --best-checkpoint-metric loss"
SECOND = '''--optimizer sgd --lr 0.05 --max-update 3
    --finetune-from-model $RUN/first/checkpoint_best.pt'''
LANGUAGE_MODEL = '''--arch gru_lm $SIZES --sample-break-mode eos --optimizer adam --lr 2e-3 $BATCH
    --max-epoch 1 --no-epoch-checkpoints'''
SEARCH = "--batch-size 8 $LIMIT"
"""


@pytest.fixture(params=EXPERIMENTS)
def trainings(request, tmp_path):
    """Function (system) -> words of its two fairseq-train commands, the run's folder as RUN."""
    experiment = read_experiment(f"sentiment/{request.param}")

    def words(name):
        run = Run(experiment.system(name), 1, tmp_path, tmp_path / "runs")
        return [shlex.split(line.replace(str(run.folder), "RUN")) for line in run.lines("train")]

    return words


def without(words, *flags):
    """The words without some options; a flag may have a value."""
    words = list(words)
    for flag in flags:
        while flag in words:
            place = words.index(flag)
            has_value = place + 1 < len(words) and not words[place + 1].startswith("-")
            del words[place : place + 1 + has_value]
    return words


def test_systems_differ_in_their_directions_alone(trainings):
    rest = []
    for name, sides in (
        ("dual", ["text", "label"]),
        ("classifier", ["text", "label"]),
        ("generator", ["label", "text"]),
    ):
        stages = trainings(name)
        for number, words in enumerate(stages):
            assert [words[words.index(flag) + 1] for flag in ("-s", "-t")] == sides
            assert ("--one-way" in words) == (name != "dual")
            metric = words[words.index("--best-checkpoint-metric") + 1]
            assert metric == ("text-label_error" if number and name != "generator" else "loss")
            assert ("--finetune-from-model" in words) == bool(number)
        flags = ("--one-way", "-s", "-t", "--best-checkpoint-metric")
        rest.append([without(words, *flags) for words in stages])
    assert rest[0] == rest[1] == rest[2]


def test_dual_supervised_learning_differs_in_the_criterion_alone(trainings):
    for dual, tied, two in zip(*map(trainings, ("dual", "dual.dsl", "dsl"))):
        flags = ("--criterion", "--language-models", "--dsl-weight")
        assert without(tied, *flags) == without(dual, *flags)
        assert without(tied, "--arch") == without(two, "--arch")
        assert tied[tied.index("--dsl-weight") + 1] == "0.1"
        first, second = (words[words.index("--arch") + 1] for words in (dual, two))
        assert second == first.replace("dual_", "dual_supervised_", 1)


def test_commands_build(tmp_path, monkeypatch):
    """The language model's too; `dsl` has the parameters of both baselines."""
    monkeypatch.chdir(FOLDER.parent)
    (tmp_path / "bin" / "lm.text").mkdir(parents=True)
    entries = "".join(f"word{number} 1\n" for number in range(40))
    for name, text in (("dict.text", entries), ("dict.label", "neg 2\npos 2\n"),
                       ("lm.text/dict", entries)):  # fmt: skip
        (tmp_path / "bin" / f"{name}.txt").write_text(text, encoding="utf-8")
    experiment = read_experiment("sentiment/imdb")
    built = {}
    for name in BUILT:
        run = Run(experiment.system(name), 1, tmp_path, tmp_path / "runs")
        built[name] = build(shlex.split(run.lines("train")[0]))
    sizes = {name: result["parameters"] for name, result in built.items()}
    assert sizes["dsl"] == sizes["classifier"] + sizes["generator"]
    assert sizes["dual"] == sizes["dual.dsl"] == sizes["generator"]
    assert built["dsl"]["model"] == "DualSupervisedLSTMClassifierModel"
    assert built["dsl"]["criterion"] == built["dual.dsl"]["criterion"] == "dual_supervised"
    assert built["lm.text"]["task"] == "LanguageModelingTask"


@pytest.mark.slow
@pytest.mark.timeout(3600)  # many commands, each of which imports fairseq
def test_from_raw_reviews_to_the_page(run, tmp_path):
    small = SmallExperiment(run, tmp_path, "sentiment/imdb", SMALL)
    (tmp_path / "raw").mkdir()
    write_archive(tmp_path / "raw" / "aclImdb_v1.tar.gz", random_reviews(16))
    assert "ready:" in small.step("prepare", "--raw", tmp_path / "raw")
    small.train("dual", "classifier.inference", "classifier", "generator")
    lines = small.report()
    errors = values_of(lines, "error rate", set="test", versus="")
    labels = {"dual", "classifier", "classifier + dual inference"}
    assert {system for system, _ in errors} == labels
    assert values_of(lines, "perplexity", set="valid", versus="").keys() == {
        ("dual", ""),
        ("generator", ""),
    }
    (test,) = (line for line in lines if line["versus"] and line["metric"] == "error rate"
               and line["set"] == "test")  # fmt: skip
    assert (test["system"], test["versus"]) == ("dual", "classifier") and float(test["p"]) <= 1
    assert set(values_of(lines, "updates", versus="").values()) == {9.0}
    sizes = values_of(lines, "parameters", versus="")
    assert sizes["classifier", ""] < sizes["dual", ""] == sizes["generator", ""]
    small.check_page("sentiment.md")
