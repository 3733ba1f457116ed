"""Other numbers of layers: names of systems, commands, the table and the picture."""

import json

import pytest
from dual_recipe.commands import train_command
from dual_recipe.settings import read_settings
from recipe_tools import RecipeError


@pytest.mark.parametrize("system, count", [("dual", 1), ("stock.de-en", 2), ("stock.en-de", 2)])
def test_only_the_number_of_layers_is_another(small, tmp_path, system, count):
    settings, words = read_settings(small), []
    for name in (system, f"{system}@6"):
        command = train_command(settings.at_depth(name), name, 1, tmp_path, tmp_path / "run")
        words.append([str(word) for word in command])
    assert len(words[0]) == len(words[1])
    places = [place for place, both in enumerate(zip(*words)) if len(set(both)) == 2]
    assert len(places) == count
    for place in places:
        assert words[0][place - 1].endswith("layers")
        assert (words[0][place], words[1][place]) == ("1", "6")
    assert settings.directions_of(f"{system}@6") == settings.directions_of(system)


@pytest.mark.parametrize(
    "system, message",
    [
        ("dual@0", r"'dual@0': allowed: dual@N, stock.de-en@N, stock.en-de@N with N layers, at le"),
        ("dual@two", r"'dual@two': allowed: dual@N"),
        ("dsl@2", r"'dsl@2': allowed: dual@N"),
        ("dual@1", "'dual@1': the recipe has 1 layers; name it dual"),
    ],
)
@pytest.mark.parametrize("name", ["train", "evaluate"])
def test_names_that_mean_nothing(script, small, tmp_path, name, system, message):
    words = [str(tmp_path), str(tmp_path / "runs"), system, "1", "--recipe", str(small)]
    with pytest.raises(RecipeError, match=message):
        script(name).main(words)


@pytest.fixture
def runs(small, tmp_path):
    """Scores of 1, 2 and 10 layers and two seeds: the dual model gains with each number."""
    settings = read_settings(small)
    for number, depth in enumerate(("", "@2", "@10")):
        for kind in settings.systems:
            own = settings.at_depth(kind + depth)
            for seed in (1, 2):
                gain = number * (kind == "dual")
                bleu = {each: {"bleu": 30 + seed + gain} for each in settings.directions_of(kind)}
                path = tmp_path / "runs" / f"{kind}{depth}.{seed}" / "scores.json"
                path.parent.mkdir(parents=True)
                result = {
                    "scores": {"test": bleu},
                    "settings": own.relevant(kind + depth),
                    "parameters": {"unique": 1100 if kind == "dual" else 1000, "used": 1},
                }
                path.write_text(json.dumps(result), encoding="utf-8")
    return tmp_path / "runs"


def test_table_and_picture(script, small, runs, write, capsys):
    page = write(
        runs / "page.md", ["<!-- begin depth small -->", "old", "<!-- end depth small -->"]
    )
    picture = runs / "depth.png"
    words = [runs, 2, 1, "--recipe", small, "--output", picture, "--into", page]
    script("depth").main([str(word) for word in words])
    text = capsys.readouterr().out
    assert "BLEU of test_a; seeds 1, 2" in text
    found = [line for line in text.splitlines() if line.startswith("|")][2:]
    for line, depth, gain in zip(found, (1, 2, 10), (0, 1, 2)):
        stock, dual = "31.50 (31.00-32.00)", f"{31.5 + gain:.2f} ({31 + gain}.00-{32 + gain}.00)"
        each = f"{stock} | {dual} | +{gain}.00"
        assert line == f"| {depth} | 2,000 | 1,100 | {each} | {each} |"
    assert len(found) == 3
    assert found[2] in page.read_text() and "old" not in page.read_text()
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_what_is_missing_is_named(script, small, runs):
    words = [str(runs), "1", "--recipe", str(small), "--output", str(runs / "depth.png")]
    depth = script("depth")
    (runs / "stock.en-de@10.1" / "scores.json").unlink()
    again = "stock.en-de@10.1.scores.json does not exist; run evaluate.py .* stock.en-de@10 1"
    with pytest.raises(RecipeError, match=again):
        depth.main(words)
    text = small.read_text(encoding="utf-8")
    small.write_text(text.replace("--beam 2", "--beam 3"), encoding="utf-8")
    with pytest.raises(RecipeError, match="dual.1.scores.json was made with other settings"):
        depth.main(words)
    for path in runs.glob("*@*/scores.json"):
        path.unlink()
    with pytest.raises(
        RecipeError, match="one number of layers; run train.py and .* stock.en-de@N"
    ):
        depth.main(words)
