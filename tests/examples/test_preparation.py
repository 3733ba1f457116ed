"""Making data: wholly or not at all, whatever ends it, and nobody else's folder."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from experiments import UsageError
from experiments.definition import FOLDER, read_experiment
from experiments.preparation import prepare

FILE = """
[data]
raw = ["text"]
commands = '''
cat $RAW/text > $DATA/copy
echo more >> $DATA/copy
'''
[systems.main]
train = "true"
"""
FAILS = FILE.replace("echo more", "false")
KILLED = FILE.replace("echo more", "kill -9 $$PPID")


@pytest.fixture
def data(tmp_path):
    """The folder of the data; the raw text is beside it."""
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "text").write_text("raw\n", encoding="utf-8")
    return tmp_path / "data"


@pytest.fixture
def make(data):
    """Function (content of the experiment's file, force) that makes the data."""

    def run(content=FILE, force=False, folder=data):
        file = data.with_name("test.toml")
        file.write_text(content, encoding="utf-8")
        prepare(read_experiment(str(file)), data.with_name("raw"), folder, 1, force)

    return run


def copied(data):
    """The words of what is made."""
    return (data / "copy").read_text(encoding="utf-8").split()


def beside(data):
    """The names in the folder of the data, but for what is always there."""
    usual = {"raw", "test.toml", "data", "data.lock"}
    return {path.name for path in data.parent.iterdir()} - usual


def test_data_is_whole_or_not_there(make, data):
    for _ in range(2):
        with pytest.raises(UsageError, match=r"status 1 .*(?s:.*)log is .*data\.prepare\.log"):
            make(FAILS)
        assert not data.exists() and data.with_name("data.prepare.log").is_file()
    make()
    assert copied(data) == ["raw", "more"] and (data / "prepare.log").is_file()
    # --force that fails leaves the data of before
    with pytest.raises(UsageError, match="status 1"):
        make(FAILS, force=True)
    assert copied(data) == ["raw", "more"]
    make()  # up to date
    make(force=True)
    assert not beside(data)


def killed(data, *words):
    """Make the data by a process that is killed before they are whole."""
    file = data.with_name("test.toml")
    file.write_text(KILLED, encoding="utf-8")
    raw = data.with_name("raw")
    command = [sys.executable, FOLDER / "run.py", file, "prepare", "--raw", raw, "--data", data]
    process = subprocess.run([*command, *words], stdout=subprocess.DEVNULL, check=False)
    assert process.returncode == -signal.SIGKILL and copied(data) == ["raw"]


def test_data_that_a_kill_left_half_made_are_made_again(make, data):
    killed(data)
    make()
    assert copied(data) == ["raw", "more"] and not beside(data)


@pytest.mark.slow
def test_a_kill_while_data_are_replaced_loses_nothing(make, data, capsys):
    make()
    killed(data, "--force")
    with pytest.raises(UsageError, match="was made with other commands; name another folder"):
        make(FAILS)
    assert copied(data) == ["raw", "more"]
    killed(data, "--force")
    with pytest.raises(UsageError, match="status 1"):
        make(FAILS, force=True)
    assert copied(data) == ["raw", "more"]
    killed(data, "--force")
    capsys.readouterr()
    make()
    assert "is up to date" in capsys.readouterr().out and copied(data) == ["raw", "more"]


def test_data_of_before_go_when_a_kill_came_after_the_last_command(make, data):
    make()
    os.replace(data, data.with_name("data.before"))
    make()
    # restored: now a whole one of each
    os.replace(data, data.with_name("data.before"))
    os.mkdir(data)
    (data / "prepared.json").write_bytes(
        (data.with_name("data.before") / "prepared.json").read_bytes()
    )
    make(force=True)
    assert copied(data) == ["raw", "more"] and not beside(data)


def test_data_are_made_where_a_link_leads(make, data):
    place = data.with_name("elsewhere")
    data.symlink_to(place)
    for _ in range(2):
        make(force=True)
        assert data.is_symlink() and copied(place) == ["raw", "more"]


def test_data_is_made_by_one_process(make, data):
    waits = "touch $RAW/begun; until test -e $RAW/go; do sleep 0.02; done; cat $RAW/text"
    content, raw = FILE.replace("cat $RAW/text", waits), data.with_name("raw")
    first = threading.Thread(target=make, args=(content,))
    first.start()
    while not (raw / "begun").exists():
        time.sleep(0.02)
    threading.Timer(1, (raw / "go").touch).start()
    with pytest.raises(UsageError, match="data: another process works on it"):
        make(content)
    first.join()
    make(content)
    assert copied(data) == ["raw", "more"]


@pytest.mark.parametrize("name", ["data", "data.before"])
def test_somebody_elses_folder_is_not_replaced(make, data, name):
    folder = data.with_name(name)
    folder.mkdir()
    (folder / "mine").touch()
    message = {"data": "data is not empty", "data.before": r"data\.before is in the way"}[name]
    with pytest.raises(UsageError, match=message):
        make(force=True)
    assert (folder / "mine").exists()


def test_a_damaged_stamp_is_named(make, data):
    make()
    (data / "prepared.json").write_text('{"commands": [', encoding="utf-8")
    with pytest.raises(UsageError, match=r"data/prepared\.json is damaged: .*, or remove \S*data "):
        make()
    assert copied(data) == ["raw", "more"]


def test_a_folder_is_named(make, data, monkeypatch):
    data.mkdir()
    monkeypatch.chdir(data)
    for name in (".", "..", "/"):
        with pytest.raises(UsageError, match=rf"--data {name}: allowed: a folder with a name"):
            make(folder=type(data)(name))
    with pytest.raises(UsageError, match="--data .*text is a file; allowed: a folder"):
        make(folder=data.with_name("raw") / "text")
