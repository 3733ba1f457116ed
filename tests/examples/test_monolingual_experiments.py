"""The experiments with monolingual text: every training parses, and what their names say is so."""

import json
import shlex

import pytest
from examples.test_dual_experiments import PARSE_AND_BUILD, write_data
from experiments.definition import FOLDER, read_experiment
from experiments.execution import Run

NAMES = {"monolingual_1450": 1450, "monolingual": 2900, "monolingual_5800": 5800}
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
def built(tmp_path_factory, run):
    """{(experiment, system): what parse_and_build.py says of its training}."""
    keys, commands = [], []
    for name in NAMES:
        experiment, data = read_experiment(f"dual/{name}"), tmp_path_factory.mktemp(name)
        write_data(data / "bin", experiment, 4000)
        for system in ("dual", "dual.online"):
            line = Run(experiment.system(system), 1, data, data / "runs").lines("train")[0]
            commands.append(shlex.split(line))
            keys.append((name, system))
    output = run("python", PARSE_AND_BUILD, stdin=json.dumps(commands), cwd=FOLDER.parent)
    line = next(line for line in output.splitlines() if line.startswith("RESULT "))
    return dict(zip(keys, json.loads(line[len("RESULT ") :])))


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
    assert [command.split()[0] for command in commands] == [
        *("fairseq-ext", "fairseq-preprocess", "fairseq-train", "fairseq-ext")
    ]
