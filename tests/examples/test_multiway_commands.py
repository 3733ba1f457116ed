"""Dry runs: the exact commands of the recipe parse with fairseq's parser and build."""

import json
import shlex
from pathlib import Path

import pytest
from multiway_recipe.settings import read_settings
from multiway_recipe.systems import find_system

PARSE_AND_BUILD = Path(__file__).with_name("parse_and_build.py")
SYSTEMS = (
    *("multi", "single.de-en", "zero-shot", "multi.tuned", "multi.5.de-en"),
    *("single.5.de-en", "lm.de-en", "df.5.de-en"),
)


@pytest.fixture(scope="module")
def built(tmp_path_factory, examples_folder, run):
    """{system: what parse_and_build.py says of the command that train.py prints}."""
    settings = read_settings("multi30k")
    data = tmp_path_factory.mktemp("multiway")
    entries = "".join(f"piece{number} 9\n" for number in range(settings.vocabulary))
    commands = []
    for system in SYSTEMS:
        folder = data / "bin" / find_system(settings, system).folder
        folder.mkdir(parents=True, exist_ok=True)
        names = ("dict.txt", *(f"dict.{language}.txt" for language in settings.languages))
        for name in names:
            (folder / name).write_text(entries, encoding="utf-8")
        script = examples_folder / "multiway" / "train.py"
        line = run("python", script, data, data / "runs", system, 1, "--dry-run")
        commands.append(shlex.split(line))
        assert not (data / "runs").exists()
    output = run("python", PARSE_AND_BUILD, stdin=json.dumps(commands))
    line = next(line for line in output.splitlines() if line.startswith("RESULT "))
    return dict(zip(SYSTEMS, json.loads(line[len("RESULT ") :])))


def test_translation_systems_parse_and_build(built):
    multi, *others = (built[name] for name in SYSTEMS if name.split(".")[0] not in ("lm", "df"))
    assert (multi["task"], multi["model"]) == ("MultiwayTranslationTask", "MultiwayModel")
    for name in ("task", "model", "dropout", "max_tokens", "lr", "betas"):
        assert all(other[name] == multi[name] for other in others), name
    per_pair = read_settings("multi30k").updates["train"]
    assert multi["max_update"] == 6 * built["single.de-en"]["max_update"] == 6 * per_pair
    assert (multi["clip_norm"], built["multi.tuned"]["clip_norm"]) == (1, 5)


def test_parameters_grow_with_languages_not_with_pairs(built):
    single, multi = built["single.de-en"]["parameters"], built["multi"]["parameters"]
    # two of six encoders and decoders, and what all share
    assert single < multi < 3 * single
    assert built["zero-shot"]["parameters"] == multi


@pytest.mark.parametrize("system", ["lm.de-en", "df.5.de-en"])
def test_language_model_and_fusion_parse(built, system):
    task = {"lm": "LanguageModelingTask", "df": "MultiwayTranslationTask"}[system.split(".")[0]]
    assert built[system]["task"] == task
