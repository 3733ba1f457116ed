"""Checkpoints are there whole or not at all; one training to a folder; what is restored."""

import errno
import io
import os
from types import SimpleNamespace

import pytest
import torch
from common import inprocess
from fairseq import checkpoint_utils

from fairseq_ext.compat import atomic_files
from fairseq_ext.compat.checkpoints import writing
from fairseq_ext.compat.data.data_files import UnreadableFile


class Killed(BaseException):
    """The end of a process, in the tests."""


# ---------------------------------------------------------------- files


def save(number, path):
    checkpoint_utils.torch_persistent_save({"number": torch.tensor(number)}, str(path))


def number_in(path):
    return int(checkpoint_utils.torch.load(path, weights_only=True)["number"])


def copy(source, path):
    return checkpoint_utils.PathManager.copy(str(source), str(path), overwrite=True)


@pytest.mark.parametrize("moment", ["write", "fsync", "replace"])
@pytest.mark.parametrize("act", ["save", "copy"])
def test_a_killed_write_changes_nothing(act, moment, tmp_path, monkeypatch):
    """Whenever it ends, the file has its old content; a whole write follows."""
    source, path = tmp_path / "new.pt", tmp_path / "checkpoint_last.pt"
    save(1, path)
    save(2, source)

    def end(*_):
        raise Killed

    class Ended(io.FileIO):
        write = end

    with monkeypatch.context() as patched:
        if moment == "write":
            patched.setattr(
                atomic_files,
                "open",
                lambda p, m: Ended(p, m) if "w" in m else open(p, m),
                raising=False,
            )
        else:
            patched.setattr(os, moment, end)
        with pytest.raises(Killed):
            save(2, path) if act == "save" else copy(source, path)
    assert number_in(path) == 1
    save(2, path) if act == "save" else copy(source, path)
    assert number_in(path) == 2
    assert sorted(os.listdir(tmp_path)) == ["checkpoint_last.pt", "new.pt"]
    assert not atomic_files.unfinished


def test_files_and_folder_are_flushed(tmp_path, monkeypatch):
    """The file before it is moved, the folder afterwards."""
    calls = []
    for name in ("fsync", "replace"):
        stock = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *a, f=stock, n=name: (calls.append(n), f(*a))[1])
    save(1, tmp_path / "a.pt")
    assert calls == ["fsync", "replace", "fsync"]


@pytest.mark.parametrize("act", ["save", "copy"])
def test_a_full_disk_names_the_file_and_leaves_it_whole(act, tmp_path, monkeypatch):
    source, path = tmp_path / "new.pt", tmp_path / "checkpoint_last.pt"
    save(1, path)
    save(2, source)
    attempts = []

    class Full:
        def __init__(self, file):
            self.file = file

        def __enter__(self):
            return self

        def __exit__(self, *_):
            self.file.close()

        def write(self, data):
            attempts.append(len(data))
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    opened = open
    monkeypatch.setattr(
        atomic_files, "open", lambda p, m: Full(opened(p, m)) if "w" in m else opened(p, m), False
    )
    with pytest.raises(OSError) as caught:
        save(2, path) if act == "save" else copy(source, path)
    assert caught.value.errno == errno.ENOSPC and caught.value.filename == str(path)
    assert "No space left" in str(caught.value) and "is whole" in str(caught.value)
    assert number_in(path) == 1 and len(os.listdir(tmp_path)) == 2 and attempts


def test_an_error_of_a_moment_is_tried_again(tmp_path, monkeypatch):
    stock, failures = os.replace, iter([errno.EIO, errno.ESTALE])

    def replace(*paths):
        number = next(failures, None)
        if number:
            raise OSError(number, os.strerror(number))
        return stock(*paths)

    monkeypatch.setattr(os, "replace", replace)
    save(3, tmp_path / "a.pt")
    assert number_in(tmp_path / "a.pt") == 3


# ---------------------------------------------------------------- trainings


@pytest.fixture
def train(tiny_training):
    """Function (save_dir, updates, options...) -> messages of the log."""

    def train(folder, updates, *flags):
        flags = ("--save-dir", folder, "--max-update", updates, "--disable-validation", *flags)
        with inprocess.logged_lines() as lines:
            inprocess.train(*tiny_training, *flags)
        return "\n".join(lines)

    return train


def test_a_torn_last_checkpoint_falls_back_to_the_newest_whole_one(train, tmp_path):
    train(tmp_path, 3, "--save-interval-updates", 1)
    last = tmp_path / "checkpoint_last.pt"
    whole = checkpoint_utils.torch.load(last, weights_only=True)["model"]
    torn, newest, *_ = writing.newest_first(str(tmp_path))
    for path in (str(last), torn):
        os.truncate(path, 1000)
    log = train(tmp_path, 3)
    assert f"{last} cannot be read" in log and f"going on from {newest}" in log
    again = checkpoint_utils.torch.load(last, weights_only=True)["model"]
    parameters = [name for name in whole if not name.endswith("_float_tensor")]  # never set
    assert all(torch.equal(whole[name], again[name]) for name in parameters)
    for path in tmp_path.glob("*.pt"):
        path.write_bytes(b"")
    with pytest.raises(Exception, match="checkpoint_last.pt|Ran out of input|read"):
        train(tmp_path, 3)


def test_what_is_wrong_with_the_next_checkpoint_is_said_of_its_own_file(tmp_path, caplog):
    last, other = tmp_path / "checkpoint_last.pt", tmp_path / "checkpoint1.pt"
    for path in (last, other):
        torch.save({"model": {}}, path)
    cfg = SimpleNamespace(save_dir=str(tmp_path), restore_file=last.name, continue_once=None)
    cfg.finetune_from_model, cfg.reset_optimizer, cfg.reset_lr_scheduler = None, False, False
    cfg.reset_meters = cfg.reset_dataloader = False
    cfg.optimizer_overrides = "{}"
    trainer = SimpleNamespace(checkpoint_suffix="")
    trainer.load_checkpoint = lambda path, *_, **__: checkpoint_utils.load_checkpoint_to_cpu(path)
    with pytest.raises(UnreadableFile, match=f"{last}: not a checkpoint of fairseq"):
        checkpoint_utils.load_checkpoint(cfg, trainer)
    (message,) = [record.getMessage() for record in caplog.records if "read" in record.msg]
    assert f"{other} cannot be read (UnreadableFile: {other}: not a checkpoint" in message


def test_a_restore_file_that_is_missing_is_refused(train, tmp_path):
    missing = tmp_path / "missing.pt"
    with pytest.raises(ValueError, match=f"--restore-file {missing}: there is no such file"):
        train(tmp_path / "run", 1, "--restore-file", missing)
    with pytest.raises(ValueError, match=f"--continue-once {missing}"):
        train(tmp_path / "run", 1, "--continue-once", missing)
    with pytest.raises(ValueError, match=f"--finetune-from-model {missing}: there is no such file"):
        train(tmp_path / "run", 1, "--finetune-from-model", missing)
    with pytest.raises(ValueError, match=f"--finetune-from-model {tmp_path}: a folder; al"):
        train(tmp_path / "run", 1, "--finetune-from-model", tmp_path)  # a folder
    assert not (tmp_path / "run").exists()


def test_asynchronous_writing_is_refused_by_name(train, tmp_path):
    with pytest.raises(ValueError, match="--write-checkpoints-asynchronously"):
        train(tmp_path, 1, "--write-checkpoints-asynchronously")


def test_a_training_leaves_no_file_of_its_own(train, tmp_path):
    (tmp_path / "checkpoint1.pt.tmp").write_text("")
    train(tmp_path, 1)
    assert os.listdir(tmp_path) == ["checkpoint_last.pt"]


def test_trainings_without_saving_need_no_lock(train, holder):
    folder, _ = holder
    with pytest.raises(ValueError, match="another training writes there"):
        train(folder, 1)
    train(folder, 1, "--no-save")


def test_checkpoints_are_tried_the_newest_first(tmp_path):
    names = ["checkpoint1.pt", "checkpoint_2_30.pt", "checkpoint_best.pt", "checkpoint3.pt"]
    for age, name in enumerate([*names, "checkpoint_last.pt", "crash.pt"]):
        (tmp_path / name).write_text("")
        os.utime(tmp_path / name, (1000 + age, 1000 + age))
    order = [os.path.basename(path) for path in writing.newest_first(str(tmp_path))]
    assert order == names[::-1]
