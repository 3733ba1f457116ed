"""The settings files: complete, checked, and the same for all systems."""

import pytest
from dual_recipe.commands import generate_command, train_command
from dual_recipe.settings import read_settings
from recipe_tools import RecipeError
from recipe_tools.commands import shown

LANGS = ("de", "en")
RECIPES = ("multi30k", "multi30k_tenth", "iwslt14", "wmt14")


@pytest.mark.parametrize("name", RECIPES)
def test_systems_differ_in_nothing_but_the_model(name, tmp_path):
    settings = read_settings(name)
    commands = {
        system: list(map(str, train_command(settings, system, 3, tmp_path, tmp_path / "run")))
        for system in settings.systems
    }
    for system, command in commands.items():
        for option in ("--task", "--arch", "-s", "-t"):
            place = command.index(option)
            del command[place : place + 2]
        for size, value in settings.sizes.items():
            flags = [f"--{size.replace('_', '-')}"]
            if system != "dual":
                flags = [f"--{side}{flags[0][1:]}" for side in ("encoder", "decoder")]
            for flag in flags:
                place = command.index(flag)
                assert command[place + 1] == str(value)
                del command[place : place + 2]
    dual, *stocks = commands.values()
    assert all(stock == dual for stock in stocks)


def test_names_of_systems():
    settings = read_settings("wmt14")
    assert settings.systems == ("dual", "stock.en-de", "stock.de-en")
    assert settings.directions_of("dual") == ("en-de", "de-en")
    assert settings.directions_of("stock.de-en") == ("de-en",)
    assert settings.directions_of("dsl") == settings.directions_of("dual.inference")
    assert settings.directions_of("lm.de") == ()
    with pytest.raises(RecipeError, match="SYSTEM 'stock' is unknown; allowed: dual, stock.en-de"):
        settings.directions_of("stock")


def test_commands_are_those_of_the_direction(small, tmp_path):
    settings = read_settings(small)
    text = shown(train_command(settings, "stock.en-de", 1, tmp_path, tmp_path / "run"))
    assert " -s en -t de " in text
    assert "'(0.9,0.98)'" in text
    tasks = {"dual": "dual_translation", "dsl": "dual_translation", "stock.en-de": "translation"}
    for system, task in tasks.items():
        command = generate_command(settings, system, "c.pt", tmp_path, "en-de", "valid", [])
        assert f" --task {task} -s en -t de --path c.pt --gen-subset valid --beam 2" in shown(
            command
        )


def test_dual_supervised_learning_differs_in_the_criterion_alone(small, tmp_path):
    """From the dual model, and from two stock models with the same sizes."""
    settings, runs = read_settings(small), tmp_path / "runs"

    def command(system):
        words = train_command(settings, system, 3, tmp_path, runs / f"{system}.3")
        return [str(word).replace(f"{system}.3", "run") for word in words]

    models = ",".join(f"{lang}={runs / f'lm.{lang}.3' / 'checkpoint_best.pt'}" for lang in LANGS)
    more = ["--criterion", "dual_supervised", "--language-models", models, "--dsl-weight", "0.01"]
    dual, dsl, stacks = (command(system) for system in ("dual", "dual.dsl", "dsl"))
    place = dsl.index("dual_supervised") - 1
    assert dsl[place : place + 6] == more and dsl[:place] + dsl[place + 6 :] == dual
    assert stacks[stacks.index("--arch") + 1] == "dual_supervised_transformer"
    assert all(word in stacks for word in more)
    assert "--encoder-embed-dim 16" in " ".join(stacks)
    assert command("lm.de")[1] == str(tmp_path / "bin" / "lm.de")
    assert "--task language_modeling --arch gru_lm" in " ".join(command("lm.de"))


def test_results_depend_on_the_settings_of_their_own_system(small):
    before = read_settings(small)
    small.write_text(
        small.read_text(encoding="utf-8").replace("--dsl-weight 0.01", "--dsl-weight 0.1"),
        encoding="utf-8",
    )
    after = read_settings(small)
    for system in ("dual", "stock.de-en", "dual.inference"):
        assert before.relevant(system) == after.relevant(system)
    for system in ("dsl", "dual.dsl"):
        assert before.relevant(system) != after.relevant(system)


@pytest.mark.parametrize(
    "old, new, message",
    [
        ("layers = 1\n", "", r"section \[model\] has no layers"),
        ("layers = 1", "layers = one", r"\[model\] layers = one; allowed: a whole number"),
        ("[model]\n", "[model]\nlayer = 2\n", r"section \[model\] has layer; allowed: .*layers"),
        ("[model]\n", "[mode]\n[model]\n", r"section \[mode\]; allowed: data, model"),
        ("average = 2", "average = 2\naverage_by = days", "average_by = days; allowed: epochs, up"),
        ("[data]", "data", "no section headers"),
    ],
)
def test_errors_name_file_and_key(small, old, new, message):
    small.write_text(small.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    with pytest.raises(RecipeError, match=message) as error:
        read_settings(small)
    assert "small.cfg" in str(error.value)


def test_unknown_recipe():
    with pytest.raises(RecipeError, match="--recipe multi is neither a file nor.*multi30k"):
        read_settings("multi")
