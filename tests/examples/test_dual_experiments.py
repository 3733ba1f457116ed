"""The experiments of examples/dual: commands parse, build models, and go from text to tables."""

import csv
import functools
import shlex
import shutil
import sys

import pytest
from examples.parse_and_build import build
from experiments.definition import FOLDER, read_experiment
from experiments.execution import Run

WMT14 = pytest.param("wmt14", marks=pytest.mark.slow)  # large models
EXPERIMENTS = ("multi30k", "multi30k_tenth", "iwslt14", WMT14)
# Sec. 3.2 of the paper: layers, width, feed-forward width; dropout; heads are the usual ones
PAPER = {"iwslt14": ([6, 256, 1024, 4], 0.1), "wmt14": ([6, 1024, 4096, 16], 0.3)}
VOCABULARY = {"iwslt14": 30000, "wmt14": 32000}
TRAINED = ("dual", "stock.{0}", "stock.{1}", "dsl", "dual.dsl", "lm.{2}", "lm.{3}", "dual@2")
SMALL = """
like = "multi30k"
title = "invented text"
[variables]
TEST_FILE = "test_a"
VOCABULARY = "--vocabulary 60"
LAYERS = 1
WIDTH = 16
FEED_FORWARD = 16
HEADS = 2
LENGTH = "--lr 5e-3 --max-tokens 400 --max-epoch 2"
AVERAGED = 2
LANGUAGE_MODEL = '''--arch gru_lm --embed-dim 8 --hidden-size 8 --sample-break-mode eos
    --optimizer adam --max-tokens 400 --max-epoch 1 --no-epoch-checkpoints'''
SEARCH = "--beam 2 --max-tokens 400"
"""


def write_data(folder, experiment, size):
    """A data folder with a joint dictionary as large as the experiment's."""
    entries = "".join(f"piece{number} 9\n" for number in range(size))
    for language in (name.split(".")[1] for name in experiment.systems if name.startswith("lm.")):
        for path in (folder / f"dict.{language}.txt", folder / f"lm.{language}" / "dict.txt"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(entries, encoding="utf-8")


def systems_of(experiment):
    """The systems that are built, in the order of TRAINED."""
    forth, back = (name.split(".")[1] for name in experiment.systems if name.startswith("stock")
                   and "@" not in name)  # fmt: skip
    return [name.format(forth, back, *forth.split("-")) for name in TRAINED]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Function: experiment -> {system of TRAINED, or "named": what comes out of its training}.

    "named": the dual architecture without its sizes and dropout on the command line.
    """

    @functools.cache
    def built(name):
        experiment, data = read_experiment(f"dual/{name}"), tmp_path_factory.mktemp(name)
        write_data(data / "bin", experiment, VOCABULARY.get(name, 4000))
        commands = {}
        for key, system in zip(TRAINED, systems_of(experiment)):
            line = Run(experiment.system(system), 1, data, data / "runs").lines("train")[0]
            commands[key] = shlex.split(line)
        commands["named"] = list(commands["dual"])
        for size in ("layers", "embed-dim", "ffn-embed-dim", "attention-heads", "dropout"):
            place = commands["named"].index(f"--{size}")
            del commands["named"][place : place + 2]
        return {key: build(command) for key, command in commands.items()}

    return built


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_systems_differ_in_the_model_alone(built, name):
    systems = built(name)
    dual = systems["dual"]
    assert (dual["task"], dual["model"]) == ("DualTranslationTask", "DualTransformerModel")
    for direction in (0, 1):
        stock = systems[f"stock.{{{direction}}}"]
        assert (stock["task"], stock["model"]) == ("TranslationTask", "TransformerModel")
        for setting in ("dropout", "max_tokens", "lr", "betas", "smoothing", "max_update"):
            assert stock[setting] == dual[setting], setting


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_dual_supervised_learning_changes_the_criterion_alone(built, name):
    systems = built(name)
    dual, tied, two = (systems[system] for system in ("dual", "dual.dsl", "dsl"))
    assert tied["criterion"] == two["criterion"] == "dual_supervised"
    for setting in ("model", "parameters", "sizes", "dropout", "lr", "smoothing"):
        assert tied[setting] == dual[setting], setting
    assert two["parameters"] == sum(systems[f"stock.{{{n}}}"]["parameters"] for n in (0, 1))
    assert {systems[f"lm.{{{n}}}"]["task"] for n in (2, 3)} == {"LanguageModelingTask"}


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_depth_is_the_only_difference_of_the_systems_named_by_it(built, name):
    deep, dual = built(name)["dual@2"], built(name)["dual"]
    assert deep["sizes"] == [2, *dual["sizes"][1:]]


@pytest.mark.parametrize("name", ["iwslt14", WMT14])
def test_sizes_are_those_of_the_paper(built, name):
    sizes, dropout = PAPER[name]
    for key in ("dual", "named"):
        model = built(name)[key]
        assert (model["sizes"], model["dropout"], model["lr"]) == (sizes, dropout, [2e-4])
    # Table 2 of the paper
    if name == "iwslt14":
        stock = sum(built(name)[f"stock.{{{n}}}"]["parameters"] for n in (0, 1))
        assert round(built(name)["dual"]["parameters"] / 1e6) == 20 and stock == pytest.approx(
            38e6, abs=1e6
        )


# one system of each kind; the others differ from them in sizes or in the criterion
RUN = ("dual", "stock.de-en", "stock.en-de", "dsl", "dual.inference", "separate.inference")


@pytest.mark.slow
@pytest.mark.timeout(3600)  # some eighty commands, each of which imports fairseq
def test_from_raw_text_to_tables(run, raw, tmp_path):
    script = FOLDER / "run.py"
    small = tmp_path / "small.toml"
    small.write_text(SMALL, encoding="utf-8")
    for name in ("_shared.toml", "multi30k.toml"):
        shutil.copyfile(FOLDER / "dual" / name, tmp_path / name)
    folders = ("--data", tmp_path / "my data", "--runs", tmp_path / "my runs")

    def step(*words):
        return run(sys.executable, script, small, *words, *folders, cwd=tmp_path)

    assert "ready:" in step("prepare", "--raw", raw)
    for system in RUN:
        text = step(system, 1)
        assert "done:" in text and ("train epoch 001" in text or "inference" in system)
        assert "fairseq-" not in step(system, 1)  # nothing is done twice
    text = step("report", 1)
    evaluated = [
        system for system in read_experiment(str(small)).systems.values() if system.evaluate
    ]
    others = len(evaluated) - len(RUN)
    assert f"\nnot begun: {others} of the {len(evaluated)} runs that" in text
    with open(tmp_path / "my runs" / "report.csv", encoding="utf-8", newline="") as stream:
        lines = list(csv.DictReader(stream))
    compared = {(line["versus"], line["system"]) for line in lines if line["versus"]}
    labels = {line["system"] for line in lines}
    pairs = read_experiment(str(small)).compare
    assert compared == {pair for pair in pairs if set(pair) <= labels}
    scored = [line for line in lines if line["metric"] == "BLEU" and not line["versus"]]
    assert len(scored) == 4 * len({line["system"] for line in scored})
    parameters = {
        (line["system"], line["direction"]): float(line["value"])
        for line in lines
        if line["metric"] == "parameters" and not line["versus"]
    }
    both = parameters["stock", "de-en"] + parameters["stock", "en-de"]
    assert parameters["dual", ""] < both == parameters["dsl", ""]
