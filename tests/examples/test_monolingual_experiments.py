"""The experiments with monolingual text: every training parses, and what their names say is so."""

import re
import shlex

import pytest
from examples.parse_and_build import build
from examples.test_dual_experiments import write_data
from experiments.definition import read_experiment
from experiments.execution import Run
from small_experiment import SmallExperiment, values_of

NAMES = {
    "monolingual_1450": 1450,
    "monolingual": 2900,
    "monolingual_5800": 5800,
    "monolingual_11600": 11600,
}
ALL_LINES = 29000


@pytest.mark.parametrize("name", NAMES)
def test_no_line_is_taken_twice(name):
    """Pairs, text of one language and text of the other are three parts of the corpus."""
    commands = " ; ".join(read_experiment(f"dual/{name}").prepare)
    pairs = int(commands.split("--train-lines ")[1].split()[0])
    parts = [part.split('"')[1].rstrip("p").split(",") for part in commands.split("sed -n ")[1:]]
    (first, last), (other, end) = ([int(number) for number in part] for part in parts)
    assert pairs == NAMES[name]
    assert (first, other, end) == (pairs + 1, last + 1, ALL_LINES)
    assert end - last == last - pairs


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """{(experiment, system): what comes out of its training}."""
    keys, commands = [], []
    for name in NAMES:
        experiment, data = read_experiment(f"dual/{name}"), tmp_path_factory.mktemp(name)
        write_data(data / "bin", experiment, 4000)
        for system in ("dual", "dual.online"):
            line = Run(experiment.system(system), 1, data, data / "runs").lines("train")[0]
            commands.append(shlex.split(line))
            keys.append((name, system))
    return dict(zip(keys, map(build, commands)))


@pytest.mark.parametrize("name", NAMES)
def test_lines_change_the_number_of_updates_alone(built, name):
    plain, online = built[name, "dual"], built[name, "dual.online"]
    assert online["max_update"] == 2 * plain["max_update"]
    assert {**online, "max_update": 0} == {**plain, "max_update": 0}


@pytest.mark.parametrize("name", NAMES)
def test_rounds_of_back_translation_need_each_other(name):
    systems = read_experiment(f"dual/{name}").systems
    assert systems["stock.once.de-en"].needs == ("stock.en-de",)
    assert systems["stock.twice.de-en"].needs == ("stock.once.en-de",)
    commands = systems["stock.twice.de-en"].train
    assert commands[0].startswith("fairseq-ext back-translate $RUNS/stock.once.en-de.$SEED/")
    # what fairseq reads beside train, and adds to it
    assert 'mv "$$file" $RUN/bin/train1' in "".join(commands)
    assert systems["both.once"].needs == ("both",)
    assert systems["both.twice"].needs == ("both.once",)
    commands = systems["both.twice"].train
    assert any("$RUNS/both.once.$SEED/average.pt $RUNS/both.$SEED/bin" in line for line in commands)


def test_every_spelling_has_its_folder():
    experiment = read_experiment("dual/sampled")
    (spelling,) = (line for line in experiment.prepare if "--dropout" in line)
    numbers = spelling.partition(" in ")[2].partition(";")[0].split()
    for system, folder in (("tagged.online", "$DATA/bin"), ("both", "$RUN/bin")):
        (train,) = (line for line in experiment.systems[system].train if "fairseq-train" in line)
        folders = train.split()[1].split(":")
        assert folders == [folder, *(f"{folder}-{number}" for number in numbers)]


SMALL = """
TEST_FILE = "test_a"
VOCABULARY = "--vocabulary 70"
LAYERS = 1
WIDTH = 16
FEED_FORWARD = 16
HEADS = 2
UPDATES = 8
AVERAGE = "--inputs $RUN/checkpoint_last.pt"
SEARCH = "--beam 2 --max-tokens 400"
"""
DUAL = f"""{SMALL}
SCHEDULE = "--lr 5e-3 --lr-scheduler polynomial_decay --warmup-updates 2 --max-tokens 400"
JOIN = 2
MORE_UPDATES = 12
"""
LINES = """
PAIRS = 60
FIRST = 61
LAST = 90
FIRST_OTHER = 91
LAST_OTHER = 110
"""
MULTIWAY = """
TEST_FILE = "test_a"
VOCABULARY = 50
SIZES = "--embed-dim 16 --hidden-size 16 --context-size 16 --readout-size 16"
LENGTH = '''--max-update 8 --validate-interval-updates 4 --save-interval-updates 4
    --no-epoch-checkpoints'''
SEARCH = "--beam 2 --max-tokens 400"
PAIRS = 60
FIRST = 61
LAST = 120
"""
PIVOT = """
FURTHER = 6
PAIRS = 60
FIRST = 61
LAST = 120
"""


@pytest.mark.slow
@pytest.mark.timeout(3600)  # many commands, each of which imports fairseq
def test_back_translation_from_raw_text_to_scores(run, raw, tmp_path):
    small = SmallExperiment(run, tmp_path, "dual/monolingual", DUAL + LINES)
    assert "ready:" in small.step("prepare", "--raw", raw)
    small.train("dual", "dual.online", "dual.online.inference", "stock.twice.*")
    small.train("stock.de-en", "stock.en-de")
    lines = small.report()
    bleu = values_of(lines, "BLEU", set="test_a", direction="de-en")
    assert {("stock.twice", "stock"), ("dual.online", "dual"), ("dual.online", "stock")} <= set(
        bleu
    )
    # the synthetic pairs are added to the real ones
    log = (small.runs / "stock.twice.de-en.1" / "train.log").read_text(encoding="utf-8")
    assert "train1.de-en" in log


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_back_translation_by_one_stock_model_from_raw_text_to_scores(run, raw, tmp_path):
    small = SmallExperiment(run, tmp_path, "dual/monolingual", DUAL + LINES + "TOKENS_BOTH = 400")
    assert "ready:" in small.step("prepare", "--raw", raw)
    small.train("both", "both.once", "both.twice")
    bleu = values_of(small.report(), "BLEU", set="test_a", direction="en-de")
    assert {("both", ""), ("both.once", ""), ("both.twice", "")} <= set(bleu)
    text = small.runs / "both.twice.1" / "text"
    sources, targets = (
        (text / f"synthetic.{side}").read_text(encoding="utf-8").splitlines()
        for side in ("from", "to")
    )
    # English lines are targets of sources that ask for English, and German ones of others
    lines = {tag: (small.data / "text" / f"mono.{tag}").read_text(encoding="utf-8").splitlines()
             for tag in ("en", "de")}  # fmt: skip
    assert targets == lines["en"] + lines["de"]
    tags = [source.split()[0] for source in sources]
    assert tags == ["<en>"] * len(lines["en"]) + ["<de>"] * len(lines["de"])
    log = (small.runs / "both.twice.1" / "train.log").read_text(encoding="utf-8")
    assert "train1.from-to" in log


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_sub_words_that_change_from_raw_text_to_scores(run, raw, tmp_path):
    more = "TOKENS_BOTH = 400\nSPELLINGS = '1 2'\nLEFT_OUT = 0.3\n"
    more += "BINS = '$DATA/bin:$DATA/bin-1:$DATA/bin-2'\n"
    more += "BINS_BOTH = '$RUN/bin:$RUN/bin-1:$RUN/bin-2'\n"
    longer = DUAL.replace("UPDATES = 8", "UPDATES = 20").replace("UPDATES = 12", "UPDATES = 30")
    small = SmallExperiment(run, tmp_path, "dual/sampled", longer + LINES + more)
    assert "ready:" in small.step("prepare", "--raw", raw)
    small.train("both", "tagged.online")
    bleu = values_of(small.report(), "BLEU", set="test_a", direction="en-de")
    assert {("both", ""), ("tagged.online", "")} <= set(bleu)
    for folder, pair in ((small.data, "de-en"), (small.runs / "both.1", "from-to")):
        for number in (1, 2):
            # every piece that merges leave behind is in the dictionary
            binarised = (folder / f"bin-{number}" / "preprocess.log").read_text(encoding="utf-8")
            shares = re.findall(r"([0-9.]+)% replaced", binarised)
            assert len(shares) >= 2 and set(shares) == {"0.0"}
        # the passes take turns
        system = "both.1" if pair == "from-to" else "tagged.online.1"
        log = (small.runs / system / "train.log").read_text(encoding="utf-8")
        assert all(f"{folder}/{part}/train.{pair}" in log for part in ("bin", "bin-1", "bin-2"))


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_three_languages_from_raw_text_to_scores(run, raw3, tmp_path):
    lines = LINES + "FIRST_FRENCH = 111"
    small = SmallExperiment(run, tmp_path, "dual/monolingual_three", DUAL + lines)
    assert "ready:" in small.step("prepare", "--raw", raw3)
    small.train("three", "three.online")
    bleu = values_of(small.report(), "BLEU", set="test_a", direction="en-de")
    assert ("three.online", "three") in bleu


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", ["dual", "multiway"])
def test_a_direction_without_data_from_raw_text_to_scores(name, run, raw3, tmp_path):
    changes = SMALL + PIVOT if name == "dual" else MULTIWAY
    small = SmallExperiment(run, tmp_path, f"{name}/zero_resource", changes)
    assert "ready:" in small.step("prepare", "--raw", raw3)
    small.train("base.*", "made.*", "real.*", "longer.*")
    bleu = values_of(small.report(), "BLEU", set="test_a", direction="fr-de")
    assert {("made pairs", "by English"), ("made pairs", "zero-shot")} <= set(bleu)
    # a German-French pair is seen by none of the first trainings
    log = (small.runs / "base.1" / "train.log").read_text(encoding="utf-8")
    assert "train.de-fr" not in log


def test_tatoeba_makes_the_sets_before_anything_else():
    experiment = read_experiment("dual/monolingual_tatoeba")
    assert experiment.raw == ("deu-eng.zip",)
    assert experiment.prepare[0].startswith("python examples/prepare.py tab-separated --file $RAW/")
    assert "--train $DATA/divided/train --valid $DATA/divided/valid" in experiment.prepare[1]


def test_the_longer_training_on_tatoeba_makes_as_many_updates_as_that_on_multi30k():
    longer, short, captions = (
        read_experiment(f"dual/{name}").systems["dual.online"].train[0].split()
        for name in ("monolingual_tatoeba_longer", "monolingual_tatoeba", "monolingual")
    )
    place = longer.index("--max-update") + 1
    assert longer[place] == captions[place] == str(2 * int(short[place]))
    assert len(longer) == len(short)
