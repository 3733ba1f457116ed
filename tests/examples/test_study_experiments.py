"""The study: its sizes differ in the pairs alone, and it goes from raw text to tables."""

import pytest
from experiments.definition import read_experiment
from small_experiment import SmallExperiment, values_of

PAIRS = {"study_1450": 1450, "study_2900": 2900, "study_5800": 5800, "study_11600": 11600}
OPTIONS_OF_A_SIZE = ("--dropout", "--validate-interval")
SMALL = """
TEST_FILE = "test_a"
VOCABULARY = "--vocabulary 60"
WIDTH = 16
FEED_FORWARD = 16
HEADS = 2
LENGTH = "--lr 5e-3 --lr-scheduler reduce_lr_on_plateau --max-tokens $TOKENS --max-epoch 2"
TOKENS = 400
AVERAGED = 2
SEARCH = "--beam 2 --max-tokens 400"
"""


def training(name, system):
    """The words of the training command, without the data and what a size chooses."""
    commands = read_experiment(f"dual/{name}").systems[system].train
    command = next(command for command in commands if command.startswith("fairseq-train"))
    words = command.replace(f"dual/{name}/", "").split()
    for option in OPTIONS_OF_A_SIZE:
        place = words.index(option)
        del words[place : place + 2]
    return words


@pytest.mark.parametrize("name", PAIRS)
def test_sizes_differ_in_the_pairs_dropout_and_how_often_they_are_validated(name):
    small, all_pairs = (read_experiment(f"dual/{size}") for size in (name, "study"))
    lines = f" --train-lines {PAIRS[name]}"
    assert small.prepare[0].replace(lines, "") == " ".join(all_pairs.prepare[0].split())
    assert small.prepare[1:] == all_pairs.prepare[1:]
    for system in ("dual", "both", "stock.de-en"):
        assert training(name, system) == training("study", system)


@pytest.mark.parametrize("name", ["study", "multi30k", "monolingual", "iwslt14", "wmt14"])
def test_both_directions_in_one_stock_model_see_as_many_tokens_as_the_dual_model(name):
    tokens = {}
    for system in ("dual", "both"):
        words = " ".join(read_experiment(f"dual/{name}").systems[system].train).split()
        tokens[system] = int(words[words.index("--max-tokens") + 1])
    assert tokens["both"] == 2 * tokens["dual"]


@pytest.mark.slow
@pytest.mark.timeout(3600)  # many commands, each of which imports fairseq
def test_the_study_from_raw_text_to_scores(run, raw, tmp_path):
    small = SmallExperiment(run, tmp_path, "dual/study", SMALL)
    assert "ready:" in small.step("prepare", "--raw", raw)
    small.train("dual", "both", "stock.de-en", "stock.en-de")
    for number, side, tag in (("1", "de", "<en>"), ("2", "en", "<de>")):
        lines = (small.data / "text" / f"test.{side}").read_text(encoding="utf-8").splitlines()
        file = small.runs / "both.1" / "text" / f"test-{number}.from"
        tagged = file.read_text(encoding="utf-8").splitlines()
        assert tagged == [f"{tag} {line}" for line in lines]
    lines = small.report()
    for direction in ("de-en", "en-de"):
        bleu = values_of(lines, "BLEU", set="test_a", direction=direction)
        assert {("dual", "both"), ("dual", "stock"), ("both", "stock")} <= set(bleu)
