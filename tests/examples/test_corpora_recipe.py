"""The experiment of one's own pairs and text has numbers that fit them."""

from argparse import ArgumentParser

import pytest
from corpora import recipe
from experiments.definition import read_experiment

from fairseq_ext.tools import UsageError


@pytest.fixture
def text(tmp_path):
    """Function (name, lines) that writes a file of the folder of the user's text."""

    def write(name, lines):
        content = "".join(line + "\n" for line in lines)
        (tmp_path / name).write_text(content, encoding="utf-8")

    for split, count in {"train": 20, "valid": 2, "test": 2, "mono": 70}.items():
        for language in ("cs", "en"):
            write(f"{split}.{language}", [f"{split} {number}" for number in range(count)])
    return write


@pytest.fixture
def written(tmp_path, capsys):
    """Function of further words -> (the experiment, its file, what was printed)."""

    def run(*words, languages=("cs", "en")):
        parser = ArgumentParser()
        recipe.add_arguments(parser)
        output = tmp_path / "mine.toml"
        named = [str(tmp_path), "--languages", *languages, "--output", str(output), *words]
        recipe.run(parser.parse_args(named))
        experiment = read_experiment(str(output))
        return experiment, output.read_text(encoding="utf-8"), capsys.readouterr().out

    return run


@pytest.mark.parametrize(
    ("pairs", "lines", "name"),
    [
        (2900, 13050, "recipe"),
        (1450, 13775, "recipe_1450"),
        (1450, 3444, "recipe_1450_less_text"),
        (500, 13775, "recipe_500"),
    ],
)
def test_the_numbers_of_the_measured_experiments(pairs, lines, name):
    """JOIN rests on a round share of the pairs, so that it is some updates more."""
    values = recipe.numbers(pairs, lines)
    commands = read_experiment(f"dual/{name}").systems
    (online,) = (line for line in commands["tagged.online"].train if "fairseq-train" in line)
    assert f"--validate-interval {values['EVERY']} " in online
    updates = int(online.partition("de-en@mono=")[2].partition(",")[0])
    assert updates <= values["JOIN"] <= 1.02 * updates
    diversified = " ".join(commands["tagged.diversified"].train)
    assert f"--validate-interval {values['EVERY_DIVERSIFIED']} " in diversified
    before = " ".join(commands["both.longer"].train)
    assert f"--upsample-primary {values['UPSAMPLED']}" in before
    assert f"--max-update {values['LONGER']}" in before


def test_few_and_many_pairs():
    few = {"EVERY": 100, "EVERY_DIVERSIFIED": 33, "JOIN": 10, "UPSAMPLED": 1, "LONGER": 4560}
    assert recipe.numbers(50, 20) == few
    many = recipe.numbers(40_000, 400_000)
    rest = {"JOIN": 1140, "UPSAMPLED": 10, "LONGER": 9120}
    assert many == {"EVERY": 1, "EVERY_DIVERSIFIED": 1, **rest}


def test_the_file_is_an_experiment(text, written, tmp_path):
    text("train.en", ["", *(f"train {number}" for number in range(19))])  # an empty side
    experiment, content, printed = written()
    variables = content.partition("[variables]\n")[2].splitlines()
    assert variables[:3] == ['SOURCE = "cs"', 'TARGET = "en"', "EVERY = 263"]
    assert "UPSAMPLED = 3" in variables and "VOCABULARY" not in content
    (training,) = (
        line for line in experiment.systems["tagged.online"].train if "fairseq-train" in line
    )
    assert "--validate-interval 263 " in training and "cs-en@mono=4," in training
    assert printed.startswith(f"{tmp_path}/mine.toml: 19 pairs, 70 lines of cs, 70 of en\n")
    assert f"run.py {tmp_path}/mine.toml tagged.online.annealed 1 --raw {tmp_path}\n" in printed


def test_a_copy_of_the_pairs_is_no_other_text(text, written):
    text("mono.cs", [f"train {number}" for number in range(20)])
    experiment, _, printed = written()
    assert " tagged.online.en.annealed 1 " in printed
    assert "tagged.online.en.annealed" in experiment.systems
    text("mono.en", [f"train {number}" for number in range(20)])
    assert " tagged 1 " in written("--force")[2]


def test_words_without_blanks(text, written):
    """Validations count sub-words, the report words of the language; no character is changed."""
    text("train.zh", ["一只狗在草地上跑过去了，它很高兴。"] * 20)
    for split in ("valid", "test", "mono"):
        text(f"{split}.zh", ["一只猫"])
    experiment, content, _ = written(languages=("en", "zh"))
    assert 'BLEU_OF = "--eval-tokenized-bleu"' in content
    assert 'VOCABULARY = "--vocabulary 4000 --normalisation identity"' in content
    scored = [line for line in experiment.systems["tagged"].evaluate if "score.py text" in line]
    assert scored and all("--tokenize zh=zh" in line for line in scored)


def test_more_characters_than_sub_words(text, written):
    text("mono.cs", [chr(0x4E00 + number) for number in range(3000)])
    assert 'VOCABULARY = "--vocabulary 6000"' in written()[1]


def test_what_is_missing_or_in_the_way_is_named(text, written, tmp_path):
    written()
    with pytest.raises(UsageError, match=r"mine.toml exists; allowed: another name, or --force"):
        written()
    for languages in (("cs",), ("cs", "cs"), ("cs", "pt-BR")):
        with pytest.raises(UsageError, match="allowed: two endings without a dash, as pt_BR"):
            written("--force", languages=languages)
    text("train.en", ["a"])
    with pytest.raises(UsageError, match=r"train.cs has 20 lines and .*train.en 1"):
        written("--force")
    (tmp_path / "mono.cs").unlink()
    with pytest.raises(UsageError, match="allowed .*without other text: a copy of train.cs"):
        written("--force")
    (tmp_path / "valid.en").unlink()
    with pytest.raises(UsageError, match=r"there is neither .*valid.en nor .*valid.en.gz"):
        written("--force")


def test_the_output_is_an_experiment_by_its_name(text, written):
    with pytest.raises(UsageError, match=r"--output mine: allowed: a name that ends in .toml"):
        written("--output", "mine")
