"""Where the dictionaries and sub-word models of a checkpoint are looked for."""

from argparse import Namespace

import pytest

from fairseq_ext.inference.places import candidate_folders, data_folder, has_data, subword_folders


@pytest.fixture
def run(tmp_path):
    """An experiment: EXP/bin with dictionaries, EXP/runs/one/checkpoint_best.pt."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "dict.xx.txt").write_text("word 1\n")
    (tmp_path / "runs" / "one").mkdir(parents=True)
    checkpoint = tmp_path / "runs" / "one" / "checkpoint_best.pt"
    checkpoint.touch()
    return checkpoint


def test_what_the_caller_names_wins(run, tmp_path):
    stored = Namespace(data="elsewhere")
    assert data_folder(run, stored, tmp_path / "bin") == tmp_path / "bin"
    with pytest.raises(FileNotFoundError, match="data .*: there is no such folder"):
        data_folder(run, stored, tmp_path / "none")
    with pytest.raises(FileNotFoundError, match="it has no dict.txt, dict.LANGUAGE.txt or config"):
        data_folder(run, stored, tmp_path / "runs")


def test_the_folder_of_the_checkpoint_comes_first(run, tmp_path):
    (run.parent / "dict.txt").write_text("word 1\n")
    assert data_folder(run, {"data": str(tmp_path / "bin")}, None) == run.parent


def test_the_folder_of_the_training_is_found(run, tmp_path, monkeypatch):
    absolute = {"data": str(tmp_path / "bin")}
    assert data_folder(run, absolute, None) == tmp_path / "bin"
    # shards: the dictionaries are in the first folder
    assert data_folder(run, {"data": f"{tmp_path / 'bin'}:nowhere"}, None) == tmp_path / "bin"
    monkeypatch.chdir(tmp_path)
    assert str(data_folder(run, {"data": "bin"}, None)) == "bin"
    # the experiment was moved, with the folder that the training was called in
    monkeypatch.chdir("/")
    moved = run.parent.parent / "checkpoint_best.pt"
    moved.touch()
    assert data_folder(moved, {"data": "bin"}, None).resolve() == tmp_path / "bin"


def test_a_folder_that_is_several_to_fairseq_is_refused(run, tmp_path):
    """Of bin:2 it would read the dictionaries of bin."""
    (tmp_path / "bin:2").mkdir()
    (tmp_path / "bin:2" / "dict.xx.txt").write_text("other 1\n")
    with pytest.raises(ValueError, match="bin:2': fairseq takes a path with a colon for several"):
        data_folder(run, {}, tmp_path / "bin:2")
    with pytest.raises(ValueError, match="allowed: a folder without one"):
        data_folder(tmp_path / "bin:2" / "checkpoint_best.pt", {}, None)


def test_all_places_are_named_where_there_are_none(run):
    with pytest.raises(
        FileNotFoundError, match=r"its dictionaries are in none of .*nowhere"
    ) as info:
        data_folder(run, {"data": "nowhere"}, None)
    assert "load(" in str(info.value) and "DATA" in str(info.value)
    with pytest.raises(FileNotFoundError, match="in none of"):
        data_folder(run, {"data": None}, None)


def test_folders_are_looked_at_once(run, tmp_path):
    assert candidate_folders(run, {"data": str(run.parent)}) == [run.parent]
    assert subword_folders(run, run.parent) == [run.parent, run.parent.parent]
    assert subword_folders(run, tmp_path / "bin")[0] == tmp_path / "bin"
    assert tmp_path in subword_folders(run, tmp_path / "bin")


def test_marks_of_data(tmp_path):
    assert not has_data(tmp_path)
    (tmp_path / "config.yaml").touch()  # of recordings
    assert has_data(tmp_path)
