"""examples/duo_translation: rows of equal size, their tables; the whole recipe (slow)."""

import pytest
from duo_translation_recipe.commands import generate_command, train_command
from duo_translation_recipe.settings import LONG, ROWS, read_settings
from duo_translation_recipe.tables import contrasts, curve_table, score_table
from recipe_tools import RecipeError

ENTRIES = 2000


@pytest.fixture(scope="module")
def settings():
    return read_settings("multi30k")


def words(command):
    return list(map(str, command))


@pytest.fixture(scope="module")
def models(settings, tmp_path_factory):
    """{row: model} without storage, of a joint dictionary as large as the recipe's."""
    import torch
    from fairseq import options, tasks
    from fairseq.dataclass.utils import convert_namespace_to_omegaconf

    import fairseq_ext  # noqa: F401

    data, found = tmp_path_factory.mktemp("data"), {}
    (data / "bin").mkdir()
    for language in settings.languages:
        text = "".join(f"w{number} 9\n" for number in range(ENTRIES))
        (data / "bin" / f"dict.{language}.txt").write_text(text, encoding="utf-8")
    vector = " ".join(["0.5"] * 128)
    (data / "subwords.vec").write_text(f"w1 {vector}\n", encoding="utf-8")
    for row in ROWS:
        command = words(train_command(settings, f"{row}.de-en", 1, data, data))
        place = command.index("--user-dir")
        command = command[1:place] + command[place + 2 :]
        args = options.parse_args_and_arch(options.get_training_parser(), command)
        cfg = convert_namespace_to_omegaconf(args)
        # a file's vectors are values: only that row needs storage
        with torch.device("cpu" if row == "vectors" else "meta"):
            found[row] = tasks.setup_task(cfg.task).build_model(cfg.model)
    return found


def test_rows_have_the_same_number_of_parameters(models):
    counts = {
        row: sum(parameter.numel() for parameter in model.parameters())
        for row, model in models.items()
    }
    assert max(counts.values()) < 1.01 * min(counts.values()), counts
    assert counts["fusion"] == counts["vectors"]


def test_each_row_has_the_additions_of_those_above_it(models):
    sizes = {row: model.decoder.module.size for row, model in models.items() if row[0] != "t"}
    switches = [
        (size.streams, size.share_kv, size.duo_norm, size.fusion) for size in sizes.values()
    ]
    assert switches == [
        (2, False, "off", False),
        (2, True, "off", False),
        (2, True, "decoder", False),
        *3 * [(2, True, "decoder", True)],
    ]


def test_rows_differ_in_their_own_options_only(settings, tmp_path):
    def rest(row):
        command = words(train_command(settings, f"{row}.en-de", 1, tmp_path, tmp_path))
        own = words(settings.words[row])
        place = command.index(own[0], command.index("--arch"))
        assert command[command.index("-s") : command.index("-s") + 4] == ["-s", "en", "-t", "de"]
        return command[:place] + command[place + len(own) : command.index("--save-dir")]

    first, *others = (rest(row) for row in ROWS if row not in LONG)
    assert all(other == first for other in others)
    assert first[first.index("--max-update") + 1] == "2000"
    longer, other = map(rest, LONG)
    assert longer == other and longer[longer.index("--max-update") + 1] == "6000"
    last = words(train_command(settings, "meta.de-en", 1, tmp_path, tmp_path, ["--lr", "1"]))
    assert last[-2:] == ["--lr", "1"]
    made = words(generate_command(settings, "c.pt", tmp_path, "en-de", "test"))
    assert made[made.index("-s") + 1] == "en" and made[made.index("--gen-subset") + 1] == "test"


@pytest.mark.parametrize("name", ["fusion", "fusion.de-fr", "both.de-en"])
def test_unknown_systems_are_named(settings, name):
    with pytest.raises(RecipeError, match="allowed: .transformer.meta.share.norm.fusion.vectors."):
        settings.parts(name)


def test_results_depend_on_their_own_row(tmp_path, settings, examples_folder):
    text = (examples_folder / "duo_translation" / "multi30k.cfg").read_text(encoding="utf-8")
    path = tmp_path / "multi30k.cfg"
    path.write_text(text.replace("192", "200"), encoding="utf-8")
    other = read_settings(path)
    names = [f"{row}.de-en" for row in ROWS]
    changed = [name for name in names if other.relevant(name) != settings.relevant(name)]
    assert changed == ["meta.de-en"]
    path.write_text(text.replace("long = 3", "long = 4"), encoding="utf-8")
    other = read_settings(path)
    changed = [name for name in names if other.relevant(name) != settings.relevant(name)]
    assert changed == ["transformer_long.de-en", "fusion_long.de-en"]


def test_tables(settings):
    def result(bleu):
        scores = {
            name: {"bleu": bleu, "chrf": 50.0, "bleu_lower": bleu} for name in ("valid", "test")
        }
        cost = {"parameters": {"used": 1000}, "seconds_per_update": 0.1, "perplexity": 7.0}
        return {"scores": scores, **cost}

    results = {("meta.de-en", 1): result(30.0), ("meta.de-en", 2): result(32.0)}
    table = score_table(settings, results, "de-en")
    assert "| + meta-embeddings | 31.00 (30.00-32.00) |" in table and "| 28.41 |" in table
    assert "Transformer" not in table and score_table(settings, results, "en-de") is None
    pairs = contrasts()
    assert ("norm", "fusion") in pairs and ("transformer", "fusion") in pairs
    assert len(pairs) == len(set(pairs)) == 10 and pairs[-1] == tuple(LONG)
    points = {"bleu": [(0.5, 10.0), (1.0, 20.0)], "ppl": [(0.5, 30.0)]}
    longer = {metric: [(1.5, 25.0)] for metric in ("bleu", "ppl")}
    text = curve_table({"de-en": {"meta": points, "fusion_long": longer}})
    assert "| 0.5 | 10.0 / 30.00 | - |" in text and "| 1.0 | - | - |" in text
    assert "| 1.5 | - | 25.0 / 25.00 |" in text


@pytest.mark.slow
def test_whole_recipe(tmp_path, run, raw, examples_folder):
    folder = examples_folder / "duo_translation"
    text = (folder / "multi30k.cfg").read_text(encoding="utf-8")
    for old, new in (
        ("vocabulary = 2000", "vocabulary = 60"),
        ("test = test_2016_flickr", "test = test_a"),
        ("updates = 2000", "updates = 8"),
        ("validations = 8", "validations = 2"),
        ("--max-tokens 1024", "--max-tokens 400"),
    ):
        assert old in text
        text = text.replace(old, new)
    recipe = tmp_path / "small.cfg"
    recipe.write_text(text, encoding="utf-8")
    data, runs, page = tmp_path / "data", tmp_path / "runs", tmp_path / "page.md"
    page.write_text(
        "<!-- begin duo small -->\n<!-- end duo small -->\n"
        "<!-- begin curves duo small -->\n<!-- end curves duo small -->\n"
    )
    with_recipe = ("--recipe", recipe)
    run("python", folder / "prepare.py", raw, data, *with_recipe)
    for row in ("transformer", "fusion"):
        words = (data, runs, f"{row}.de-en", 1, *with_recipe)
        run("python", folder / "train.py", *words)
        run("python", folder / "evaluate.py", *words)
    out = run("python", folder / "report.py", data, runs, 1, *with_recipe, "--into", page)
    assert "not evaluated: meta.de-en.1" in out
    picture = tmp_path / "curves.png"
    words = ("--output", picture, "--into", page)
    run("python", folder / "curves.py", runs, 1, *with_recipe, *words)
    assert picture.stat().st_size > 1000
    assert "fusion - transformer" in page.read_text() and "epoch, de-en" in page.read_text()
