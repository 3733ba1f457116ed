"""A training whose folder fills up or becomes read-only ends in one line; nothing is lost."""

import builtins
import errno
import os

import pytest
import torch
from common import inprocess
from common.checkpoints import compared, differences

from fairseq_ext.compat import atomic_files, user_errors
from fairseq_ext.compat.checkpoints import folder_lock

ERRORS = {errno.ENOSPC: "No space left on device", errno.EROFS: "Read-only file system"}
WORDS = ["-s", "xx", "-t", "yy", "--arch", "transformer", "--optimizer", "adam", "--lr", 0.01]
WORDS += ["--batch-size", 40, "--disable-validation", "--no-epoch-checkpoints", "--seed", 2]
for _side in ("encoder", "decoder"):
    WORDS += [f"--{_side}-layers", 1, f"--{_side}-embed-dim", 16, f"--{_side}-ffn-embed-dim", 16]
    WORDS += [f"--{_side}-attention-heads", 2]


@pytest.fixture
def train(toy_corpus, capsys):
    """Function (folder, updates) -> (status, last line) of a training that fails or not."""

    def train(folder, updates):
        words = [toy_corpus.two, *WORDS, "--save-dir", folder, "--max-update", updates]
        command = user_errors.reports_user_errors("fairseq-train", inprocess.train)
        status = 0
        try:
            command(*words, "--save-interval-updates", 1, "--keep-interval-updates", 1)
        except SystemExit as end:
            status = end.code
        lines = capsys.readouterr().err.strip().splitlines()
        return status, lines[-1] if lines else ""

    return train


class Failing:
    """A file that fails after some bytes; all its other methods are the file's."""

    def __init__(self, file, number):
        self.file, self.number, self.left = file, number, 2000

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()

    def __getattr__(self, name):
        return getattr(self.file, name)

    def write(self, data):
        self.left -= len(data)
        if self.left < 0:
            raise OSError(self.number, os.strerror(self.number))
        return self.file.write(data)


@pytest.mark.parametrize("number", ERRORS, ids=errno.errorcode.get)
def test_a_write_that_fails(number, train, tmp_path, monkeypatch):
    """The checkpoint before it stays whole; once it can be written, the same command goes on."""
    folder, other = tmp_path / "run", tmp_path / "other"
    assert train(folder, 1) == (0, "")
    last = folder / "checkpoint_last.pt"
    before = last.read_bytes()

    def open_failing(path, mode="r", **named):
        file = builtins.open(path, mode, **named)
        return Failing(file, number) if "w" in mode else file

    with monkeypatch.context() as patched:
        patched.setattr(atomic_files, "open", open_failing, False)
        status, line = train(folder, 3)
    assert status == 1 and ERRORS[number] in line
    assert f"{folder / 'checkpoint_1_2.pt'}" in line and "what was there before is whole" in line
    assert last.read_bytes() == before
    assert sorted(os.listdir(folder)) == ["checkpoint_1_1.pt", "checkpoint_last.pt"]
    assert train(folder, 3) == train(other, 3) == (0, "")
    assert differences(*(compared(path / last.name) for path in (other, folder))) == []


def test_a_folder_that_is_read_only_from_the_start(train, tmp_path, monkeypatch):
    """Nothing is trained; permission bits would not stop the user root."""
    assert train(tmp_path, 1) == (0, "")
    stock = os.open

    def open_read_only(path, flags, *more, **named):
        if flags & os.O_CREAT and str(path).startswith(str(tmp_path)):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), path)
        return stock(path, flags, *more, **named)

    with monkeypatch.context() as patched:
        patched.setattr(folder_lock.os, "open", open_read_only)
        status, line = train(tmp_path, 2)
    assert status == 1 and ERRORS[errno.EROFS] in line and str(tmp_path) in line
    assert torch.load(tmp_path / "checkpoint_last.pt", weights_only=True)["model"]
