"""Files of lines: which lines are used, and errors that name the file."""

import shutil

import pytest
from streams.folders import random_lines, write_lines
from streams.monolingual_runs import ROUTED, SYSTEMS, Run, write_data

from fairseq_ext.streams.monolingual import monolingual_streams

LINES = ["--monolingual", "yy"]
STREAM = "xx-yy@mono"


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_data(tmp_path_factory.mktemp("lines"))


def lines_of(run):
    """The texts of the lines that an epoch sees, by number."""
    words, by_number = run.task.dictionaries["yy"], {}
    for batch in run.batches():
        if STREAM in batch:
            part = batch[STREAM]
            for number, target in zip(part["id"].tolist(), part["target"]):
                by_number[number] = words.string(target[target.ne(words.pad())])
    return by_number


def test_empty_and_long_lines_are_left_out(data):
    flags = ["--synthetic-share", "0.8", "--monolingual-max-len", 7]
    run = Run(data, *SYSTEMS["dual"], *LINES, *flags)
    expected = dict(enumerate(random_lines("yy", 40, seed=5), start=1))
    assert lines_of(run) == expected


def test_lines_of_several_files(data, tmp_path):
    folder = shutil.copytree(data, tmp_path / "data")
    write_lines(folder, "train1", "yy", random_lines("yy", 3, seed=6))
    run = Run(folder, *SYSTEMS["dual"], *LINES, "--synthetic-share", "0.9")
    assert set(random_lines("yy", 3, seed=6)) <= set(lines_of(run).values())


def test_lines_begin_with_the_token_of_the_task_that_translates_them(data):
    """Of the second task of xx, in the dictionary of xx; that of zz-xx has another number."""
    flags = [*ROUTED, "--main-pair", "xx-zz", "--lang-pairs", "xx-zz,zz-xx,xx-yy"]
    task = Run(data, *flags, "--monolingual", "xx").task
    lines = task.dataset("train").datasets["zz-xx@mono"]
    token = task.dictionaries["xx"].index("__task_xx-zz__")
    assert token != task.task_token("zz-xx")
    assert lines[3]["source"].tolist() == [token, *lines[3]["target"].tolist()]
    assert lines.src_dict is lines.tgt_dict is task.dictionaries["xx"]


def test_files_that_hold_nothing_are_named(data, tmp_path):
    folder = shutil.copytree(data, tmp_path / "data")
    name = "train.yy-None.yy"
    write_lines(folder, "train", "yy", ["", ""])
    with pytest.raises(ValueError, match=f"{name}: no line can be used: of 2 lines 2 are empty"):
        Run(folder, *SYSTEMS["dual"], *LINES)
    write_lines(folder, "train", "yy", [])
    with pytest.raises(ValueError, match=name):
        Run(folder, *SYSTEMS["dual"], *LINES)
    for end in ("bin", "idx"):
        (folder / f"{name}.{end}").unlink()
    with pytest.raises(FileNotFoundError, match=f"no {name} for --monolingual yy; fairseq-prepro"):
        Run(folder, *SYSTEMS["dual"], *LINES)


def test_the_file_of_lines_is_no_pair(data, tmp_path):
    """Without -s, -t and --lang-pairs the folder says which pair is meant."""
    folder = shutil.copytree(data, tmp_path / "data")
    for file in folder.glob("*.xx-zz.*"):
        file.unlink()
    run = Run(folder, *SYSTEMS["dual"][:-2], *LINES)
    assert run.task.pairs == ["xx-yy", "yy-xx"]


@pytest.mark.parametrize(
    "text, pairs, expected",
    [
        ("de", ["de-en", "en-de"], ["en-de@mono"]),
        ("de,en", ["de-en", "en-de"], ["en-de@mono", "de-en@mono"]),
        ("en", ["de-en", "en-de", "fr-en"], ["de-en@mono"]),
        (None, ["de-en"], []),
    ],
)
def test_streams_of_languages(text, pairs, expected):
    assert monolingual_streams(text, pairs, pairs) == expected


def test_a_stream_of_which_nothing_is_trained_does_not_join(data):
    """--join-at is told the reason, as for a pair; the other stream joins."""
    flags = [*SYSTEMS["multiway"], "--monolingual", "xx,yy"]
    flags += ["--train-only", "encoder.xx,decoder.yy", "--join-at"]
    task = Run(data, *flags, "xx-yy@mono=2").task
    assert task.synthetic == ["xx-yy@mono"] and task.joins == {"xx-yy@mono": 2}
    message = "--join-at yy-xx@mono=2: --train-only .* trains none .* allowed: xx-yy, xx-yy@mono"
    with pytest.raises(ValueError, match=message):
        Run(data, *flags, "yy-xx@mono=2")
