"""The folders and numbers that run.py takes."""

import subprocess
import sys

import pytest
from experiments import UsageError
from experiments.definition import FOLDER, System
from script_modules import load_script


@pytest.fixture(scope="module")
def script():
    """examples/run.py as a module."""
    return load_script(FOLDER / "run.py")


@pytest.mark.parametrize("option, name", [("--data", "a:b"), ("--data", "a,b"), ("--runs", "a:b")])
def test_a_folder_that_is_two_to_fairseq_is_refused(script, tmp_path, option, name):
    (tmp_path / "test.toml").write_text('[systems.one]\ntrain = "echo"\n', encoding="utf-8")
    words = [str(tmp_path / "test.toml"), "one", "1", "--print", option, str(tmp_path / name)]
    with pytest.raises(
        UsageError, match=f"{option} {tmp_path / name}: .*'{name[1]}' for two paths"
    ):
        script.perform(script.arguments(words))


def test_a_number_of_processes_is_positive(script, capsys):
    with pytest.raises(SystemExit):
        script.arguments(["dual/multi30k", "prepare", "--workers", "0"])
    assert "--workers: 0: allowed: 1 or more" in capsys.readouterr().err


TRAINED = """
[variables]
METRICS = "bleu"
SIZE = 3
VOCABULARY = "--vocabulary 4"
[data]
raw = []
commands = "echo ready"
[systems.one]
train = "touch $RUN/trained"
evaluate = "python examples/score.py text $METRICS --hyp $RUN/a --ref $DATA/a.ja --into $RUN/b"
[systems.two]
train = "echo 'x: --size 3 and $VOCABULARY are too small' && false --size $SIZE --other 4"
"""


@pytest.fixture
def perform(script, tmp_path):
    """Function: changes of TRAINED, words of the command line -> None."""

    def perform(before, after, *words):
        (tmp_path / "test.toml").write_text(TRAINED.replace(before, after), encoding="utf-8")
        folders = ["--data", str(tmp_path / "data"), "--runs", str(tmp_path / "runs")]
        script.perform(script.arguments([str(tmp_path / "test.toml"), *words, *folders]))

    return perform


@pytest.mark.parametrize(
    "metrics, message",
    [
        ("crhf", "one: the metric 'crhf'; allowed: bleu, chrf"),
        ("bleu --into x crhf", "one: the metric 'crhf'; allowed: bleu, chrf"),
        ("bleu --tokenize ja=mecab", "one cannot be scored: --tokenize mecab: sacrebleu has"),
        ("bleu --tokenize ja", "--tokenize ja: allowed: LANGUAGE=TOKENISER"),
        ("bleu 'x", "No closing quotation"),
    ],
)
def test_scoring_is_tried_before_the_training(perform, tmp_path, metrics, message):
    with pytest.raises(UsageError, match=message):
        perform('"bleu"', f'"{metrics}"', "one", "1", "--raw", str(tmp_path))
    assert not (tmp_path / "runs").exists() and not (tmp_path / "data").exists()


def test_a_tokeniser_that_is_not_installed_is_named_before_the_training(
    perform, tmp_path, monkeypatch
):
    from sacrebleu.metrics import bleu

    def fail(_name):
        raise RuntimeError("please install sacrebleu[ja]")

    monkeypatch.setattr(bleu, "_get_tokenizer", fail)
    words = ("one", "1", "--raw", str(tmp_path))
    with pytest.raises(UsageError, match=r"--tokenize ja-mecab: please install sacrebleu\[ja\]"):
        perform('"bleu"', '"bleu --tokenize ja=ja-mecab"', *words)


def test_every_system_of_every_experiment_can_be_scored():
    from experiments.definition import names, read_experiment
    from experiments.scoring_checks import check_scoring

    for experiment in map(read_experiment, names()):
        for system in experiment.systems:
            check_scoring(experiment.system(system))


def test_metrics_of_tags_and_trees_are_there():
    """They read no text of words, with which the others are tried."""
    from experiments.metrics import NAMES
    from experiments.scoring_checks import check_words

    assert {"ner_f1", "bracket_f1"} <= set(NAMES)
    tried = set()
    check_words("one", [*NAMES, "--hyp", "tags"], tried)
    assert tried == {(name, "") for name in NAMES}


def test_metrics_and_words_of_the_shell_are_told_apart():
    from experiments.scoring_checks import check_scoring

    words = "--into $RUN/scores bleu chrf --where a=b --hyp x --ref y.zh --tokenize zh=zh > z"
    command = f"python examples/score.py text {words}"
    check_scoring(System("one", "one", (), (command,), (), {}))


def test_variables_that_hold_a_refused_option_are_named(perform, tmp_path):
    perform("", "", "prepare", "--raw", str(tmp_path))
    with pytest.raises(UsageError) as raised:
        perform("", "", "two", "1")
    last = str(raised.value).splitlines()[-1]
    path = tmp_path / "test.toml"
    names = "--size is set by SIZE; --vocabulary is set by VOCABULARY"
    assert last == f"in the variables of {path}: {names}"


def test_a_reader_that_has_seen_enough_is_no_fault():
    command = [sys.executable, FOLDER / "run.py", "dual/multi30k", "prepare", "--print"]
    with subprocess.Popen(
        [*command, "--raw", "raw"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141  # as of a process that SIGPIPE ended
