"""`fairseq-ext serve`: its options, the names of models, and errors before anything is served."""

from argparse import ArgumentParser

import pytest

from fairseq_ext.__main__ import main
from fairseq_ext.tools import UsageError
from fairseq_ext.tools.serving import command, server
from fairseq_ext.tools.serving.command import default_name, named_paths


@pytest.fixture
def folders(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file.pt").touch()
    return tmp_path


def test_models_are_named_by_their_folders(folders):
    a, b = folders / "a", folders / "b" / "file.pt"
    assert named_paths([str(a), str(b)]) == {"a": [str(a)], "b": [str(b)]}
    assert named_paths([f"x={a}", f"y={b}:{b}"]) == {"x": [str(a)], "y": [str(b), str(b)]}
    assert default_name(a / ".") == "a"


def test_signs_in_the_name_of_a_file_are_its_own(folders, monkeypatch):
    monkeypatch.chdir(folders)
    for name in ("c:d", "e=f"):
        (folders / name).mkdir()
        assert named_paths([name]) == {name: [name]}
    assert named_paths(["x=c:d"]) == {"x": ["c:d"]}


@pytest.mark.parametrize(
    "words, message",
    [
        (["{}/a", "{}/a"], "a second 'a'; allowed: another NAME=FOLDER"),
        (["x={}/c"], "there is no such folder or file"),
        (["{}/a:{}/c"], "there is no such folder or file"),
    ],
)
def test_wrong_names(words, message, folders):
    with pytest.raises(UsageError, match=message):
        named_paths([word.format(folders, folders) for word in words])


def test_it_listens_on_this_machine_only():
    parser = ArgumentParser()
    command.add_arguments(parser)
    args = parser.parse_args(["model"])
    assert (args.host, args.port, args.engine) == ("127.0.0.1", 8000, "fairseq")


@pytest.mark.parametrize("value", ["65536", "-1", "http"])
def test_a_wrong_port(value, capsys):
    with pytest.raises(SystemExit):
        main(["serve", "model", "--port", value])
    assert "allowed: a whole number from 0 to 65535" in capsys.readouterr().err


def test_errors_come_before_requests(folders, tmp_path, capsys, data, checkpoint_of):
    for words, message in [
        ([folders / "a"], "a folder without manifest.json"),
        ([checkpoint_of("transformer"), "--data", folders / "a"], "it has no dict.txt"),
        ([checkpoint_of("twin_speech_lstm"), "--data", data["speech"]], "the model is for speech"),
        ([checkpoint_of("transformer"), "--data", data["two"], "--device", "no"], "device 'no'"),
    ]:
        assert main(["serve", *map(str, words), "--port", "0"]) == 2
        assert message in capsys.readouterr().err
    with server.listening_socket("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        assert main(["serve", str(folders / "a"), "--port", str(port)]) == 2
        assert f"--port {port}: another program listens" in capsys.readouterr().err


def test_data_without_a_checkpoint_is_refused(folders, capsys):
    (folders / "a" / "manifest.json").touch()
    assert main(["serve", str(folders / "a"), "--data", "DATA", "--port", "0"]) == 2
    assert "--data DATA: packed folders hold their dictionaries" in capsys.readouterr().err
