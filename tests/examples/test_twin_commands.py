"""Settings and systems of examples/twin; its exact commands parse and build."""

import shlex

import pytest
from common.inprocess import configuration
from fairseq import options, tasks
from recipe_tools import RecipeError
from twin_recipe.commands import distance_command, generate_command, train_command
from twin_recipe.settings import FOLDER, WITH_BACKWARD, read_settings

RECIPES = sorted(path.stem for path in FOLDER.glob("*.cfg"))
TASKS = {
    "digits": "speech_to_text",
    "digits_single": "speech_to_text",
    "digits_speakers": "speech_to_text",
    "multi30k": "translation",
    "ptb": "language_modeling",
    "pixels": "language_modeling",
    "pixels_full": "language_modeling",
    "captions": "image_captioning",
    "captions_plain": "image_captioning",
}


def words_of(recipe, system, folder):
    settings = read_settings(recipe)
    return list(map(str, train_command(settings, system, 1, folder, folder / "runs")))


def arguments(command):
    """Without the program, and without the user-dir: it is imported already."""
    place = command.index("--user-dir")
    return command[1:place] + command[place + 2 :]


@pytest.mark.parametrize("recipe", RECIPES)
def test_systems_differ_in_the_criterion_only(recipe, tmp_path):
    settings = read_settings(recipe)
    assert len({settings.words[system] for system in settings.systems}) == len(settings.systems)
    rest = []
    for system in settings.systems:
        words = words_of(recipe, system, tmp_path)
        own = list(settings.words[system])
        place = words.index("--criterion")
        assert words[place : place + len(own)] == own
        del words[place : place + len(own)]
        del words[words.index("--save-dir") + 1]
        rest.append(words)
    assert all(words == rest[0] for words in rest)
    assert "--twin-weight" not in rest[0] and "polynomial_decay" in rest[0]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A folder with the dictionaries of every task, and a config.yaml."""
    folder = tmp_path_factory.mktemp("dictionaries")
    (folder / "bin").mkdir()
    for name in ("dict", "dict.de", "dict.en"):
        (folder / "bin" / f"{name}.txt").write_text("a 3\nb 2\n", encoding="utf-8")
    config = "input_feat_per_channel: 123\ninput_channels: 1\n"
    (folder / "bin" / "config.yaml").write_text(config, encoding="utf-8")
    return folder


@pytest.mark.parametrize("recipe", RECIPES)
def test_commands_parse_and_build(recipe, data):
    import torch

    counts = set()
    systems = read_settings(recipe).systems
    for system in systems if recipe == "digits" else ("baseline", "learnt"):
        words = words_of(recipe, system, data)
        cfg = configuration(options.get_training_parser(), arguments(words))
        task = tasks.setup_task(cfg.task)
        assert words[words.index("--task") + 1] == TASKS[recipe]
        with torch.device("meta"):
            counts.add(sum(one.numel() for one in task.build_model(cfg.model).parameters()))
            criterion = task.build_criterion(cfg.criterion)
        parameters = sum(one.numel() for one in criterion.parameters())
        assert bool(parameters) == (system in WITH_BACKWARD)
        assert cfg.optimization.max_update == read_settings(recipe).updates
    assert len(counts) == 1


@pytest.mark.parametrize("recipe", RECIPES)
def test_generation_parses(recipe, tmp_path):
    settings = read_settings(recipe)
    if any(metric.source == "hyp" for metric in settings.kind.METRICS):
        command = list(map(str, generate_command(settings, "c.pt", tmp_path, "test")))
        cfg = configuration(options.get_generation_parser(), arguments(command))
        assert cfg.generation.beam in (1, 5) and cfg.dataset.gen_subset == "test"


def test_distances_are_of_words(tmp_path):
    from fairseq_ext.twin.commands.words import UNITS

    for recipe in RECIPES:
        command = distance_command(read_settings(recipe), "c.pt", tmp_path, "distance")
        assert command[command.index("--unit") + 1] in UNITS
        kind = read_settings(recipe).kind
        assert ("--text" in command) == (command[command.index("--unit") + 1] != "token")
        assert (kind.UNIT == "characters") == (kind.__name__.endswith("speech"))


def test_unknown_systems_are_named():
    with pytest.raises(RecipeError, match="SYSTEM 'twin' is unknown; allowed: baseline, both, "):
        read_settings("digits").check_system("twin")
    with pytest.raises(RecipeError, match="SYSTEM 'both' is unknown; allowed: baseline, noise, "):
        read_settings("ptb").check_system("both")


def test_what_is_compared():
    pairs = read_settings("digits").contrasts
    assert ("both", "baseline") in pairs
    assert pairs[-2:] == [("identity", "both"), ("learnt", "both")]
    assert read_settings("ptb").contrasts[-1] == ("learnt", "zeros")


@pytest.mark.parametrize(
    "old, new, message",
    [
        ("kind = speech", "kind = music", "kind = music; allowed: speech, translation"),
        ("hop_ms = 15", "hop = 15", r"section \[data\] has hop; allowed: .*hop_ms"),
        ("hop_ms = 15", "vocabulary = 15", r"section \[data\] has no hop_ms"),
        ("warmup = 5", "warmup = 100", r"warmup = 100; allowed: 0 to 99 per cent"),
        ("updates = 600", "updates = few", r"\[train\] updates = few; allowed: a whole number"),
        ("checkpoint = last", "checkpoint = first", "checkpoint = first; allowed: best, last"),
        ("noise = ", "loud = ", r"section \[systems\] has no noise"),
    ],
)
def test_errors_name_file_and_key(tmp_path, old, new, message):
    text = (FOLDER / "digits.cfg").read_text(encoding="utf-8")
    assert old in text
    (tmp_path / "my.cfg").write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(RecipeError, match=message):
        read_settings(tmp_path / "my.cfg")


def test_results_depend_on_the_settings_of_their_own_system(tmp_path):
    text = (FOLDER / "digits.cfg").read_text(encoding="utf-8")
    path = tmp_path / "digits.cfg"
    path.write_text(text.replace("zeros --twin-weight 0.5", "zeros --twin-weight 2"), "utf-8")
    mine, other = read_settings("digits"), read_settings(path)
    assert [one for one in mine.systems if mine.relevant(one) != other.relevant(one)] == ["zeros"]


def test_train_prints_the_command(tmp_path, script, capsys):
    words = [tmp_path, tmp_path / "runs", "learnt", 2, "--recipe", "captions", "--dry-run"]
    script("train", "twin").main(list(map(str, words)))
    settings = read_settings("captions")
    expected = train_command(settings, "learnt", 2, tmp_path, tmp_path / "runs")
    assert shlex.split(capsys.readouterr().out) == list(map(str, expected))
    assert not list(tmp_path.iterdir())
