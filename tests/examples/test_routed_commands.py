"""Settings and systems of examples/routed; its exact commands parse and build."""

import json
import shlex

import pytest
from recipe_tools import RecipeError
from routed_recipe.commands import generate_command, train_command
from routed_recipe.settings import ALONE, KINDS, LONG, MODELS, read_settings

SYSTEMS = tuple(f"{kind}.5000" for kind in MODELS)
ENTRIES = {"en": 2500, "de": 2000, "ner": 9, "tree": 100, "amr": 1000}


@pytest.fixture(scope="module")
def settings():
    return read_settings("multi30k")


def test_systems_differ_in_model_and_pairs_only(settings, tmp_path):
    def same(name):
        command = list(map(str, train_command(settings, name, 1, tmp_path, tmp_path)))
        for flag in (
            "--arch",
            "--hidden-size",
            "--router-size",
            "--shared-blocks",
            "--encoder-layers",
            "--decoder-layers",
            "--save-dir",
        ):
            if flag in command:
                del command[command.index(flag) : command.index(flag) + 2]
        place = command.index("--lang-pairs")
        return command[place + 1], command[: place + 1] + command[place + 2 :]

    found = dict(zip(MODELS, map(same, SYSTEMS)))
    assert {kind for kind, (pairs, _) in found.items() if pairs == "en-de"} == set(ALONE)
    assert {found[kind][0] for kind in set(MODELS) - set(ALONE)} == {"en-de,en-ner,en-tree,en-amr"}
    assert len({tuple(rest) for _, rest in found.values()}) == 1


def test_sizes_have_their_data_and_updates(settings, tmp_path):
    for size, updates in (("5000", "1500"), ("10000", "2000"), ("all", "2500")):
        command = list(map(str, train_command(settings, f"full.{size}", 1, tmp_path, tmp_path)))
        assert command[1] == str(tmp_path / "bin" / size)
        for option in ("--max-update", "--total-num-update"):
            assert command[command.index(option) + 1] == updates


def test_long_ones_differ_in_their_updates_alone(settings, tmp_path):
    for kind, model in LONG.items():
        one, other = (
            list(map(str, train_command(settings, f"{name}.5000", 1, tmp_path, tmp_path)))
            for name in (kind, model)
        )
        assert [pair for pair in zip(one, other) if pair[0] != pair[1]] == [
            ("4500", "1500"),
            ("4500", "1500"),
            ("450", "150"),
            ("562", "187"),
            ("562", "187"),
            (str(tmp_path / f"{kind}.5000.1"), str(tmp_path / f"{model}.5000.1")),
        ]


def test_helpers_are_decoded_with_options_of_their_own(settings, tmp_path):
    system = settings.system("routed.all")
    main, tags = (
        list(map(str, generate_command(settings, "c.pt", tmp_path, system, pair, "test")))
        for pair in ("en-de", "en-ner")
    )
    assert main[main.index("--beam") + 1] == "5" and tags[tags.index("--beam") + 1] == "1"
    assert tags[tags.index("-t") + 1] == "ner"


@pytest.mark.parametrize("name", ["multi.5000", "routed", "routed.7", "routed.5000.1"])
def test_unknown_systems_are_named(settings, name):
    with pytest.raises(
        RecipeError, match="is unknown; allowed: .single.full.partial.routed.shallow"
    ):
        settings.system(name)


@pytest.mark.parametrize(
    "old, new, message",
    [
        ("updates = 1500 2000 2500", "updates = 1500", "one number for each of"),
        ("warmup = 10", "warmup = 100", "warmup = 100; allowed: whole numbers from 0 to 99"),
        ("sizes = 5000", "sizes = few", "few; allowed: numbers of at least 1, and all"),
        ("longest = 80", "longest = x", "longest = x; allowed: a whole number"),
        ("file = wsj", "fil = wsj", r"section \[tree\] has no file"),
    ],
)
def test_errors_name_file_and_key(tmp_path, examples_folder, old, new, message):
    text = (examples_folder / "routed" / "multi30k.cfg").read_text(encoding="utf-8")
    assert old in text
    (tmp_path / "my.cfg").write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(RecipeError, match=message):
        read_settings(tmp_path / "my.cfg")


def test_results_depend_on_the_settings_of_their_own_system(tmp_path, settings, examples_folder):
    text = (examples_folder / "routed" / "multi30k.cfg").read_text(encoding="utf-8")
    path = tmp_path / "multi30k.cfg"
    path.write_text(text.replace("--shared-blocks 3", "--shared-blocks 2"), encoding="utf-8")
    other = read_settings(path)
    changed = [kind for kind in KINDS if other.relevant(kind) != settings.relevant(kind)]
    assert changed == ["routed", "unit", "routed_long", "unit_long"]


def used_for_translation(command):
    """Parameters on the way from English to German, of the model that the command builds."""
    import torch
    from fairseq import options, tasks
    from fairseq.dataclass.utils import convert_namespace_to_omegaconf

    import fairseq_ext.routed  # noqa: F401

    args = options.parse_args_and_arch(options.get_training_parser(), command[1:])
    cfg = convert_namespace_to_omegaconf(args)
    task = tasks.setup_task(cfg.task)
    task.build_criterion(cfg.criterion)
    with torch.device("meta"):
        model = task.build_model(cfg.model)
    sizes = {name: parameter.numel() for name, parameter in model.named_parameters()}
    return sum(sizes[name] for name in model.pair_parameters("en-de"))


def test_commands_build_models_of_equal_size(settings, tmp_path):
    folder = tmp_path / "bin" / "5000"
    folder.mkdir(parents=True)
    for language, size in ENTRIES.items():
        text = "".join(f"{language}{number} 9\n" for number in range(size))
        (folder / f"dict.{language}.txt").write_text(text, encoding="utf-8")
    counts = []
    for name in SYSTEMS:
        command = list(map(str, train_command(settings, name, 1, tmp_path, tmp_path)))
        place = command.index("--user-dir")
        counts.append(used_for_translation(command[:place] + command[place + 2 :]))
    assert max(counts) < 1.01 * min(counts) and counts[0] == pytest.approx(1.2e6, rel=0.02)


def test_train_prints_the_command(tmp_path, run, examples_folder, settings):
    script = examples_folder / "routed" / "train.py"
    line = run("python", script, tmp_path, tmp_path / "runs", "routed.all", 1, "--dry-run")
    expected = train_command(settings, "routed.all", 1, tmp_path, tmp_path / "runs")
    assert shlex.split(line.splitlines()[-1]) == list(map(str, expected))
    assert json.dumps(list(tmp_path.iterdir())) == "[]"
