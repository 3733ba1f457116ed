"""The settings, the names of the systems, and that systems differ in the model and data only."""

import pytest
from multiway_recipe.commands import generate_command, interactive_command, train_command
from multiway_recipe.settings import read_settings
from multiway_recipe.systems import all_systems, find_system
from recipe_tools import RecipeError
from recipe_tools.commands import shown


@pytest.fixture
def settings(small_multiway):
    return read_settings(small_multiway)


def words_of(settings, name, folder):
    command = train_command(settings, find_system(settings, name), 3, folder / "data", folder)
    return list(map(str, command))


def option(command, name):
    """Value of an option, the last one as with argparse."""
    return command[len(command) - 1 - command[::-1].index(name) + 1]


def test_systems_differ_in_pairs_data_and_length_only(settings, tmp_path):
    def same(name):
        command = words_of(settings, name, tmp_path)
        for flag, size in (
            ("fairseq-train", 1),
            *(("--lang-pairs", 1), ("--save-dir", 1), ("--max-update", 1)),
            *(("--validate-interval-updates", 1), ("--save-interval-updates", 1)),
            *(("--total-num-update", 1), ("--warmup-updates", 1)),
        ):
            place = command.index(flag)
            del command[place : place + size + 1]
        return command

    assert same("multi") == same("single.de-en") == same("zero-shot")
    assert same("multi.50.de-en") == same("single.50.en-de") == same("long.50.en-de")


def test_long_is_the_single_model_with_more_updates(settings, tmp_path):
    single, longer = (
        words_of(settings, f"{kind}.50.en-de", tmp_path) for kind in ("single", "long")
    )
    assert single[1] == longer[1]
    assert [option(each, "--max-update") for each in (single, longer)] == ["6", "9"]


@pytest.mark.parametrize("name, pairs", [("multi", 6), ("zero-shot", 4), ("single.fr-en", 1)])
def test_updates_per_pair_are_equal(settings, tmp_path, name, pairs):
    command = words_of(settings, name, tmp_path)
    assert len(option(command, "--lang-pairs").split(",")) == pairs
    assert option(command, "--max-update") == str(8 * pairs)
    assert option(command, "--save-interval-updates") == str(4 * pairs)
    assert option(command, "--total-num-update") == str(8 * pairs)
    assert option(command, "--warmup-updates") == str(2 * pairs)


def test_each_system_reads_its_data_and_starts_from_what_it_needs(settings, tmp_path):
    command = words_of(settings, "multi.50.de-en", tmp_path)
    assert command[1] == str(tmp_path / "data" / "bin" / "de-en.50")
    assert option(command, "--best-checkpoint-metric") == "worst_bleu"
    assert option(command, "--max-update") == str(6 * 6)

    fused = words_of(settings, "df.50.en-de", tmp_path)
    assert option(fused, "--arch") == "deep_fusion_gru"
    assert fused[1] == command[1] and option(fused, "--lang-pairs") == "en-de"
    for flag, run in (("--translation-model", "single.50"), ("--language-model", "lm")):
        assert option(fused, flag) == str(tmp_path / f"{run}.en-de.3" / "checkpoint_best.pt")

    more = words_of(settings, "more.50.en-de", tmp_path)
    single = str(tmp_path / "single.50.en-de.3" / "checkpoint_best.pt")
    assert option(more, "--finetune-from-model") == single
    assert option(more, "--train-only") == "output"
    assert option(more, "--arch") == option(command, "--arch")
    for flag in ("--max-update", "--warmup-updates", "--validate-interval-updates", "--lr"):
        assert option(more, flag) == option(fused, flag)

    model = words_of(settings, "lm.en-de", tmp_path)
    assert option(model, "--task") == "language_modeling"
    assert model[1] == str(tmp_path / "data" / "bin" / "lm.en-de")
    assert option(model, "--max-update") == "5"

    tuned = words_of(settings, "multi.tuned", tmp_path)
    assert option(tuned, "--finetune-from-model") == str(tmp_path / "multi.3/checkpoint_best.pt")
    assert option(tuned, "--train-only") == "shared,output"
    assert option(tuned, "--clip-norm") == "5"


def test_decoding_uses_all_dictionaries(settings, tmp_path):
    command = generate_command(settings, "c.pt", tmp_path, "fr-en", "valid", ["--bpe", "x"])
    wanted = "--task multiway_translation -s fr -t en --path c.pt --beam 2 --max-tokens 400 --bpe x"
    assert wanted in shown(command) and shown(command).endswith("--gen-subset valid")
    assert command[1] == tmp_path / "bin" / "all"
    text = shown(interactive_command(settings, "c.pt", tmp_path, "en-de", "file", []))
    assert text.startswith("fairseq-interactive ") and " --input file --buffer-size " in text


def test_names_of_systems(settings):
    names = list(all_systems(settings))
    assert names[:3] == ["multi", "multi.tuned", "single.de-en"]
    assert {"zero-shot", "zero-shot.tuned", "lm.en-de", "df.50.de-en"} <= set(names)
    # one model serves both directions of the cut pair; a single model has nothing to fine-tune
    assert "multi.50.en-de" not in names and "single.de-en.tuned" not in names
    assert find_system(settings, "multi.50.de-en").directions == ("de-en", "en-de")
    untrained = find_system(settings, "zero-shot")
    assert untrained.directions == untrained.pivoted == ("de-fr", "fr-de")
    assert set(untrained.pairs) == {"de-en", "en-de", "en-fr", "fr-en"}
    with pytest.raises(RecipeError, match=r"SYSTEM 'multi.7' is unknown; allowed: multi, zero-sh"):
        find_system(settings, "multi.7")


def test_results_depend_on_the_settings_of_their_own_system(small_multiway, settings):
    text = small_multiway.read_text(encoding="utf-8").replace("percent = 50", "percent = 20 50")
    small_multiway.write_text(text.replace("arch = gru_lm", "arch = other"), encoding="utf-8")
    other = read_settings(small_multiway)
    changed = {
        name
        for name, system in all_systems(settings).items()
        if settings.relevant(system.sections) != other.relevant(system.sections)
    }
    assert changed == {name for name in all_systems(settings) if name.startswith(("lm.", "df."))}


@pytest.mark.parametrize(
    "old, new, message",
    [
        ("languages = de en fr", "languages = de en", r"languages = de en; allowed: three or more"),
        ("languages = de en fr", "languages = de en en", "languages = de en en; allowed: three"),
        ("pairs = de-en", "pairs = en-de", r"pairs = en-de; allowed: de-en, de-fr, en-fr"),
        ("percent = 50", "percent = 0.5", "percent = 0.5; allowed: whole numbers from 1 to 100"),
        ("percent = 50", "percent = 200", "percent = 200; allowed: whole numbers from 1 to 100"),
        ("sentences = disjoint", "sentences = some", "sentences = some; allowed: disjoint, all"),
        ("pivot = en", "pivot = fr", "pivot = fr; allowed: en"),
        ("warmup = 25", "warmup = 100", "warmup = 100; allowed: whole numbers from 0 to 99"),
        ("validations = 2\n", "", r"section \[train\] has no validations"),
    ],
)
def test_errors_name_file_and_key(small_multiway, old, new, message):
    text = small_multiway.read_text(encoding="utf-8")
    small_multiway.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(RecipeError, match=message) as error:
        read_settings(small_multiway)
    assert "small.cfg" in str(error.value)
