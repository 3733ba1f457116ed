"""Running experiments: every command once, refusals, order, and nothing left behind."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest
from experiments import UsageError
from experiments.definition import FOLDER, read_experiment
from experiments.execution import Run, execute, placed
from experiments.files import locked, write_json
from experiments.preparation import prepare
from script_modules import load_script

FILE = """
title = "a test"
[variables]
WORD = "first"
[data]
raw = ["text"]
commands = "cat $RAW/text* > $DATA/copy"
[systems.base]
train = "echo base $SEED >> $RUN/made"
[systems.main]
needs = ["base"]
train = '''
echo $WORD >> $RUN/made
echo second >> $RUN/made
test ! -e $RUN/fail
'''
evaluate = '''
cat $RUNS/base.$SEED/made $DATA/copy >> $RUN/found
echo end >> $RUN/found
'''
"""


@pytest.fixture
def places(tmp_path):
    """Paths of an experiment's file and folders, with its raw data."""
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "text").write_text("raw\n", encoding="utf-8")
    file = tmp_path / "test.toml"
    file.write_text(FILE, encoding="utf-8")
    return {name: tmp_path / name for name in ("raw", "data", "runs")} | {"file": file}


@pytest.fixture(scope="module")
def script():
    """examples/run.py as a module."""
    return load_script(FOLDER / "run.py")


@pytest.fixture
def call(places, script):
    """Function (words) that runs run.py with the folders of `places`."""

    def run(*words):
        names = ("raw", "data", "runs") if "prepare" in words else ("data", "runs")
        folders = [f"--{name}={places[name]}" for name in names]
        options = words[words.index("--") :] if "--" in words else ()
        words = [str(word) for word in words[: len(words) - len(options)]]
        args = script.arguments([str(places["file"]), *words, *folders, *options])
        script.perform(args)

    return run


def made(places, name="main.1", file="made"):
    return (places["runs"] / name / file).read_text(encoding="utf-8").split()


def test_each_command_runs_once_and_needed_systems_before(places, call):
    call("prepare")
    call("main", 1)
    assert made(places, "base.1") == ["base", "1"]
    assert made(places) == ["first", "second"] and made(places, file="found")[-1] == "end"
    call("main", 1)
    assert made(places) == ["first", "second"]
    assert made(places, file="found") == ["base", "1", "raw", "end"]


def test_two_seeds_of_a_system_are_trained_for_each_of_what_needs_them(places, call, capsys):
    both = """
[systems.both]
needs = ["base"]
seeds = 2
evaluate = "cat $RUNS/base.$SEED_1/made $RUNS/base.${SEED_2}/made > $RUN/found"
"""
    places["file"].write_text(FILE + both, encoding="utf-8")
    call()
    assert "both (after base, 2 seeds)" in capsys.readouterr().out
    call("prepare")
    call("both", 2, 1)
    assert made(places, "both.1", "found") == ["base", "1", "base", "2"]
    assert made(places, "both.2", "found") == ["base", "3", "base", "4"]
    places["file"].write_text((FILE + both).replace("echo base", "echo BASE"), encoding="utf-8")
    for seed in (3, 4):
        shutil.rmtree(places["runs"] / f"base.{seed}")
    with pytest.raises(UsageError, match=r"both\.2 was started with another base\.3 than"):
        call("both", 2)
    with pytest.raises(UsageError, match=r"SEED 0: both is of 2 seeds; allowed: 1 \.\.\."):
        call("both", 0)
    places["file"].write_text(FILE + both.replace("= 2", "= 3"), encoding="utf-8")
    with pytest.raises(UsageError, match=r"both\]: seeds = 3; allowed: 1 or 2"):
        call("both", 1)
    places["file"].write_text(FILE + both.replace("seeds = 2\n", ""), encoding="utf-8")
    with pytest.raises(UsageError, match=r"SEED_2 is not known here; allowed: .*SEED_1"):
        call("both", 5)


def test_a_command_that_failed_is_run_again_and_those_before_are_not(places, call):
    call("prepare")
    (places["runs"] / "main.1").mkdir(parents=True)
    (places["runs"] / "main.1" / "fail").touch()
    with pytest.raises(UsageError, match=r"(?s)status 1 of the command test .*train\.log"):
        call("main", 1)
    (places["runs"] / "main.1" / "fail").unlink()
    call("main", 1)
    assert made(places) == ["first", "second"]


def test_a_pattern_stands_for_several_systems(places, call):
    call("prepare")
    call("*a*", 1)
    assert made(places, "base.1") == ["base", "1"] and made(places) == ["first", "second"]
    assert made(places, file="found")[-1] == "end"
    with pytest.raises(UsageError, match=r"SYSTEM 'b\*d' is not in .*allowed: base, main"):
        call("b*d", 1)


def test_other_options_are_refused_with_the_words_that_differ(places, call):
    call("prepare")
    call("main", 1)
    places["file"].write_text(FILE.replace('"first"', '"other"'), encoding="utf-8")
    with pytest.raises(
        UsageError, match=r"main\.1 was started with other options: .*-first \+other"
    ):
        call("main", 1)
    call("main", 2)  # another run
    assert made(places, "main.2")[0] == "other"


def test_a_run_belongs_to_the_training_that_it_needs(places, call):
    call("prepare")
    call("main", 1)
    shutil.rmtree(places["runs"] / "base.1")
    call("main", 1)  # trained again with the same commands
    places["file"].write_text(FILE.replace("echo base", "echo BASE"), encoding="utf-8")
    shutil.rmtree(places["runs"] / "base.1")
    with pytest.raises(UsageError, match=r"main\.1 was started with another base than .*base\.1"):
        call("main", 1)
    with pytest.raises(UsageError, match="another base"):
        call("report", 1)
    shutil.rmtree(places["runs"] / "main.1")
    call("main", 1)
    assert made(places, file="found")[0] == "BASE"


def test_an_evaluation_is_repeated_from_its_first_change_on(places, call):
    call("prepare")
    call("main", 1)
    places["file"].write_text(FILE.replace("echo end", "echo END"), encoding="utf-8")
    call("main", 1)
    assert made(places, file="found") == ["base", "1", "raw", "end", "END"]


def test_a_system_that_is_told_the_raw_files_makes_the_data(places, call, capsys):
    call("main", 1, "--raw", places["raw"])
    output = capsys.readouterr().out
    assert "ready:" in output and made(places) == ["first", "second"]


def test_scores_of_commands_that_are_gone_are_removed(places, call):
    def scores():
        return sorted(path.name for path in (places["runs"] / "main.1" / "scores").glob("*"))

    def evaluate(*commands):
        block = "\n".join(["mkdir -p $RUN/scores", *commands])
        start, _, _ = FILE.partition("evaluate = ")
        places["file"].write_text(f"{start}evaluate = '''\n{block}\n'''\n", encoding="utf-8")
        call("main", 1)

    first, second = "echo {} > $RUN/scores/a.json", "echo {} > $RUN/scores/b.json"
    call("prepare")
    evaluate(first, second)
    assert scores() == ["a.json", "b.json"]
    evaluate(first, second.replace("b.json", "c.json"))
    assert scores() == ["a.json", "c.json"]
    with pytest.raises(UsageError, match="status 1"):
        evaluate(first, "echo {} > $RUN/scores/d.json; false")
    evaluate(first)
    assert scores() == ["a.json"]
    # a run of before the scores were noted
    file = places["runs"] / "main.1" / "commands.json"
    record = json.loads(file.read_text(encoding="utf-8"))
    del record["scores"]
    write_json(file, record)
    evaluate(first, second)
    assert scores() == ["a.json", "b.json"]
    evaluate(second)
    assert scores() == ["b.json"]


def test_a_run_is_evaluated_when_its_last_command_is_gone(places, call):
    call("prepare")
    call("main", 1)
    places["file"].write_text(FILE.replace("echo end >> $RUN/found\n", ""), encoding="utf-8")
    call("main", 1)
    system = read_experiment(str(places["file"])).system("main")
    assert Run(system, 1, places["data"], places["runs"]).is_evaluated()


def test_data_is_made_once_and_not_replaced_silently(places, call, capsys):
    call("prepare")
    call("main", 1)
    call("prepare")
    assert "is up to date" in capsys.readouterr().out
    (places["raw"] / "text").write_text("changed\n", encoding="utf-8")
    with pytest.raises(UsageError, match="was made with other raw; name another folder"):
        call("prepare")
    call("prepare", "--force")
    with pytest.raises(UsageError, match="was started with other data"):
        call("main", 1)


def test_missing_raw_files_and_seeds(places, call):
    for words in (["main"], ["main", "--print"]):
        with pytest.raises(UsageError, match="SEED is missing"):
            call(*words)
    (places["raw"] / "text").rename(places["raw"] / "text.gz")
    call("prepare")
    (places["raw"] / "text.gz").unlink()
    with pytest.raises(UsageError, match=r"neither text nor text\.gz"):
        call("prepare")


def test_more_options_are_for_fairseq_train_alone(places):
    content = FILE.replace("echo second", "fairseq-train $DATA")
    places["file"].write_text(content, encoding="utf-8")
    system = read_experiment(str(places["file"])).system("main")
    run = Run(system, 1, places["data"], places["runs"], ["--lr", "1 $x"])
    lines = run.lines("train")
    assert lines[1].startswith(f"fairseq-train {places['data']} ") and "--lr '1 $x'" in lines[1]
    assert "--lr" not in lines[0] + lines[2]


def test_more_options_that_would_do_nothing_are_refused(places, call, capsys):
    call("prepare")
    for words in (["prepare"], ["main", 1], ["*a*", 1], ["main", 1, "--print"], []):
        with pytest.raises(UsageError, match="-- --lr 1: .* runs no fairseq-train; name a system"):
            call(*words, "--", "--lr", "1")
    content = FILE.replace("echo base", "fairseq-train base")
    places["file"].write_text(content, encoding="utf-8")
    call("*a*", 1, "--print", "--", "--lr", "1")
    assert capsys.readouterr().out.count(" --lr 1\n") == 1


@pytest.mark.parametrize(
    "words, message",
    [
        (["main", 1, "--store"], "--store does nothing without report"),
        (["main", 1, "--leave-out", "BLEU"], "--leave-out does nothing without report"),
        (["main", 1, "--versus", "dual/own"], "--versus does nothing without report"),
        (["main", 1, "--force"], "--force does nothing without --raw or report --store"),
        (["report", 1, "--force"], "--force does nothing without --raw or report --store"),
        (["report", 1, "--raw", "raw"], "--raw does nothing without prepare or a SYSTEM"),
        (["--raw", "raw"], "--raw does nothing without prepare or a SYSTEM"),
        (["report", 1, "--print"], "--print does nothing without prepare or a SYSTEM"),
        (["--print"], "--print does nothing without prepare or a SYSTEM"),
        (["prepare", 1], "SEED 1 does nothing with prepare"),
    ],
)
def test_options_of_another_command_are_refused(call, words, message):
    with pytest.raises(UsageError, match=message):
        call(*words)


def test_runs_with_more_options_are_reported_with_them(places, call, capsys):
    train = "fairseq-train() { echo $$@ >> $RUN/made; }; fairseq-train"
    score = """echo '{"metric": "BLEU", "value": 1, "where": {}}' > $RUN/scores/BLEU.json"""
    content = FILE.replace("echo second >> $RUN/made", train)
    content = content.replace("echo end >> $RUN/found", f"mkdir $RUN/scores\n{score}")
    places["file"].write_text(content, encoding="utf-8")
    call("prepare")
    call("main", 1, "--", "--cpu")
    with pytest.raises(UsageError, match="was started with other options"):
        call("report", 1)
    call("report", 1, "--", "--cpu")
    assert made(places) == ["first", "--cpu"]
    assert "| main | 1.00 |" in capsys.readouterr().out
    facts = json.loads((places["runs"] / "report.json").read_text(encoding="utf-8"))
    assert facts["more options"] == "`--cpu`"
    with pytest.raises(UsageError, match=r"other options: .*---cpu \+--fp16"):
        call("report", 1, "--", "--fp16")


@pytest.mark.parametrize("folder", ["", "two words; 'and' $a/[b]"])
def test_a_printed_script_does_the_same(places, call, capsys, folder):
    places.update({name: places[name] / folder for name in ("data", "runs")})
    call("prepare", "--print")
    call("main", 1, "--print")
    text = capsys.readouterr().out
    call("main", 1, "--print", "--raw", str(places["raw"]))
    assert capsys.readouterr().out.count("mkdir -p") == text.count("mkdir -p")
    assert not (places["data"].exists() or places["runs"].exists())
    subprocess.run(["bash", "-euo", "pipefail", "-c", text], check=True)
    assert made(places) == ["first", "second"]
    assert made(places, file="found") == ["base", "1", "raw", "end"]


def test_a_run_belongs_to_one_process(places):
    with locked(places["runs"] / "main.1"):
        with pytest.raises(UsageError, match="another process works on it"):
            with locked(places["runs"] / "main.1"):
                pass


def test_a_stopped_experiment_stops_its_command(places):
    content = FILE.replace("echo base $SEED >> $RUN/made", "echo $$$$ > $RUN/pid; sleep 60; true")
    places["file"].write_text(content, encoding="utf-8")
    experiment = read_experiment(str(places["file"]))
    prepare(experiment, places["raw"], places["data"], 1, force=False)
    words = [sys.executable, str(FOLDER / "run.py"), str(places["file"]), "base", "1"]
    words += ["--data", str(places["data"]), "--runs", str(places["runs"])]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        file = places["runs"] / "base.1" / "pid"
        while not (file.is_file() and file.read_text(encoding="utf-8").strip()):
            assert process.poll() is None
            time.sleep(0.05)
        child = int(file.read_text(encoding="utf-8"))
        process.terminate()
        assert process.wait(timeout=30) == 128 + signal.SIGTERM
    # its parent is gone: another process takes note of its end, a moment later
    with pytest.raises(ProcessLookupError):
        for _ in range(200):
            os.kill(child, 0)
            time.sleep(0.05)


def test_validations_and_warnings_are_shown(tmp_path, capfd):
    log = tmp_path / "run.log"
    lines = ["INFO | valid | epoch 001", "WARNING | fairseq_ext.streams.bleu | xx-yy: no blanks"]
    lines.append("INFO | fairseq.trainer | begin training epoch 2")
    lines.append("WARNING | fairseq_cli.generate | If you are using BPE on the target side, ...")
    command = "; ".join(f"echo '2026-01-01 | {line}'" for line in lines)
    execute(f"{command}; echo warning: train.de, line 2", log)
    shown = ["valid epoch 001", "warning: xx-yy: no blanks", "warning: train.de, line 2"]
    assert capfd.readouterr().out.splitlines() == shown
    assert len(log.read_text(encoding="utf-8").splitlines()) == 5


def test_the_end_of_the_log_comes_with_the_error(tmp_path):
    with pytest.raises(UsageError, match=r"(?s)status 3 of the command .*two.*log is .*run\.log"):
        execute("echo one; echo two >&2; exit 3", tmp_path / "run.log")
    assert "one" in (tmp_path / "run.log").read_text(encoding="utf-8")


def test_the_record_is_readable(places, call):
    call("prepare")
    call("main", 1)
    record = json.loads((places["runs"] / "main.1" / "commands.json").read_text(encoding="utf-8"))
    assert record["train"][0] == "echo first >> $RUN/made" and record["trained"] == 3
    assert record["evaluated"] == len(record["evaluate"]) == 2


@pytest.mark.parametrize(
    "text, reason",
    [
        ('{"data": "x", "tra', "Unterminated string"),
        ("[]", "no table"),
        ('{"data": "x"}', "without train, trained"),
    ],
)
def test_a_damaged_record_is_named(places, call, text, reason):
    call("prepare")
    call("main", 1)
    for name in ("base.1", "main.1"):
        file = places["runs"] / name / "commands.json"
        content = file.read_text(encoding="utf-8")
        file.write_text(text, encoding="utf-8")
        with pytest.raises(
            UsageError, match=rf"{name}/commands\.json is damaged: {reason}.*remove "
        ):
            call("main", 1)
        file.write_text(content, encoding="utf-8")


def test_a_place_that_a_command_cannot_have_is_named():
    assert placed("cp ${DATA}/a $$b", {"DATA": "my data"}) == "cp 'my data'/a $b"
    with pytest.raises(UsageError, match=r"\$WORKERS is not known here; allowed: DATA"):
        placed("fairseq-preprocess --workers $WORKERS", {"DATA": "data"})
