"""One training to a folder: the lock refuses the second, and ends with its process."""

import errno
import os

import pytest

from fairseq_ext.compat.checkpoints import folder_lock


def test_the_second_training_refuses_and_a_killed_one_does_not_hold(holder):
    folder, process = holder
    text = f"--save-dir {folder}: another training writes there .process {process.pid} on host"
    with pytest.raises(ValueError, match=text):
        with folder_lock.folder_lock(str(folder)):
            raise AssertionError("two hold the lock")
    process.kill()  # its child goes on
    process.wait()
    with folder_lock.folder_lock(str(folder)) as is_locked:
        assert is_locked and str(os.getpid()) in (folder / ".training").read_text()
    assert os.listdir(folder) == []


def test_a_file_system_without_locks_is_a_warning(tmp_path, monkeypatch, caplog):
    import fcntl

    def lockf(*_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "lockf", lockf)
    with folder_lock.folder_lock(str(tmp_path)) as is_locked:
        assert not is_locked
    assert "has no locks" in caplog.text
