"""Dry runs: the exact commands of every recipe parse with fairseq's parser and build."""

import json
import shlex
from pathlib import Path

import pytest
from dual_recipe.commands import train_command
from dual_recipe.settings import FURTHER, read_settings

RECIPES = ("multi30k", "multi30k_tenth", "iwslt14", "wmt14")
PARSE_AND_BUILD = Path(__file__).with_name("parse_and_build.py")
# Sec. 3.2 of the paper: layers, width, feed-forward width; dropout; heads are the usual ones
PAPER = {"iwslt14": ([6, 256, 1024, 4], 0.1), "wmt14": ([6, 1024, 4096, 16], 0.3)}


def write_data(folder, settings):
    """A data folder with a joint dictionary as large as the recipe's."""
    (folder / "bin").mkdir(parents=True)
    entries = "".join(f"piece{number} 9\n" for number in range(settings.vocabulary))
    for language in settings.languages:
        (folder / "bin" / f"dict.{language}.txt").write_text(entries, encoding="utf-8")
        (folder / "bin" / f"lm.{language}").mkdir()
        (folder / "bin" / f"lm.{language}" / "dict.txt").write_text(entries, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def built(tmp_path_factory, recipe_folder, run):
    """{(recipe, system or "named"): what parse_and_build.py says}.

    "named": the dual architecture of the recipe without its sizes and dropout on the command line.
    """
    keys, commands = [], []
    for recipe in RECIPES:
        settings = read_settings(recipe)
        data = write_data(tmp_path_factory.mktemp(recipe), settings)
        for system in settings.systems:
            line = run(
                "python", recipe_folder / "train.py", data, data / "runs", system, 1,
                "--recipe", recipe, "--dry-run",
            )  # fmt: skip
            commands.append(shlex.split(line))
            keys.append((recipe, system))
            assert not (data / "runs").exists()
        for system in (*FURTHER[:2], *settings.language_models.values()):
            command = train_command(settings, system, 1, data, data / "runs" / system)
            commands.append([str(word) for word in command])
            keys.append((recipe, system))
        named = list(commands[keys.index((recipe, "dual"))])
        for size in ("layers", "embed-dim", "ffn-embed-dim", "attention-heads", "dropout"):
            place = named.index(f"--{size}")
            del named[place : place + 2]
        commands.append(named)
        keys.append((recipe, "named"))
    output = run("python", PARSE_AND_BUILD, stdin=json.dumps(commands))
    line = next(line for line in output.splitlines() if line.startswith("RESULT "))
    return dict(zip(keys, json.loads(line[len("RESULT ") :])))


@pytest.mark.parametrize("recipe", RECIPES)
def test_commands_parse_and_build(built, recipe):
    settings = read_settings(recipe)
    dual, *stocks = (built[recipe, system] for system in settings.systems)
    assert dual["task"] == "DualTranslationTask"
    assert dual["model"] == "DualTransformerModel"
    for stock in stocks:
        assert (stock["task"], stock["model"]) == ("TranslationTask", "TransformerModel")
        for name in ("dropout", "max_tokens", "lr", "betas", "smoothing"):
            assert stock[name] == dual[name], name
    assert dual["sizes"] == list(settings.sizes.values())


@pytest.mark.parametrize("recipe", RECIPES)
def test_commands_of_dual_supervised_learning(built, recipe):
    settings = read_settings(recipe)
    dual, stacks = built[recipe, "dual.dsl"], built[recipe, "dsl"]
    stocks = [built[recipe, system]["parameters"] for system in settings.systems[1:]]
    assert stacks["model"] == "DualSupervisedTransformerModel"
    assert stacks["parameters"] == sum(stocks)
    assert dual["parameters"] == built[recipe, "dual"]["parameters"]
    for found in (dual, stacks):
        assert (found["task"], found["criterion"]) == ("DualTranslationTask", "dual_supervised")
        for name in ("dropout", "max_tokens", "lr", "betas", "smoothing"):
            assert found[name] == built[recipe, "dual"][name], name
    for system in settings.language_models.values():
        assert built[recipe, system]["task"] == "LanguageModelingTask"


@pytest.mark.parametrize("recipe", sorted(PAPER))
def test_paper_settings(built, recipe):
    sizes, dropout = PAPER[recipe]
    dual = built[recipe, "dual"]
    assert (dual["sizes"], dual["dropout"]) == (sizes, dropout)
    assert (dual["lr"], dual["betas"], dual["max_tokens"]) == ([2e-4], "(0.9,0.98)", 4096)
    beam = read_settings(recipe).evaluate_options
    assert beam[beam.index("--beam") + 1] == {"iwslt14": "6", "wmt14": "4"}[recipe]
    # the architecture's name alone means the same
    named = built[recipe, "named"]
    assert (named["sizes"], named["dropout"], named["parameters"]) == (
        sizes,
        dropout,
        dual["parameters"],
    )


def test_parameters_of_iwslt_are_those_of_the_paper(built):
    stocks = sum(built["iwslt14", f"stock.{each}"]["parameters"] for each in ("de-en", "en-de"))
    assert built["iwslt14", "dual"]["parameters"] == pytest.approx(20e6, abs=1e6)
    assert stocks == pytest.approx(38e6, abs=1e6)


def test_options_after_two_dashes_win(run, recipe_folder, tmp_path, small):
    script = recipe_folder / "train.py"
    base = ["python", script, tmp_path, tmp_path / "runs", "dual", 1, "--recipe", small]
    line = run(*base, "--dry-run", "--", "--max-epoch", 7, "--fp16")
    assert line.rstrip().endswith("--max-epoch 7 --fp16")
    assert "has no folder bin; run prepare.py first" in run(*base, fails=True)
