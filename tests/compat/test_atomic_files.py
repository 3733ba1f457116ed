"""What killed writes leave is removed; what others write stays."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from fairseq_ext.compat import atomic_files
from fairseq_ext.tools import write_texts


def test_what_dead_processes_left_is_removed(tmp_path):
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    here = atomic_files.host_name()
    gone = [f".checkpoint1.pt.{here}.{dead.pid}.part", ".a.pt.elsewhere.1.part", "b.pt.tmp"]
    stay = ["checkpoint1.pt", f".c.pt.{here}.{os.getppid()}.part", "notes.part", "x.tmp"]
    for name in (*gone, *stay):
        (tmp_path / name).write_text("")
    assert sorted(atomic_files.remove_leftovers(str(tmp_path))) == sorted(gone)
    assert sorted(os.listdir(tmp_path)) == sorted(stay)


@pytest.fixture(params=[signal.SIGTERM, signal.SIGINT])
def sent_within(request, monkeypatch):
    """A function: let a signal come behind the first call of a function of os, and handle it."""
    before = signal.getsignal(request.param)

    def send(name, handler):
        signal.signal(request.param, lambda *_: handler())
        function, calls = getattr(os, name), []

        def interrupted(source, target):
            function(source, target)
            calls.append(target)
            if len(calls) == 1:
                os.kill(os.getpid(), request.param)

        monkeypatch.setattr(atomic_files.os, name, interrupted)

    yield send
    signal.signal(request.param, before)


def test_a_signal_waits_until_a_folder_is_replaced(tmp_path, sent_within):
    """A handler that ends the process at once would lose the folder that is replaced."""
    for name in ("work", "target"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "holds").write_text(name)
    seen = []
    sent_within("rename", lambda: seen.append((tmp_path / "target" / "holds").read_text()))
    atomic_files.replace_folder(str(tmp_path / "work"), str(tmp_path / "target"))
    assert seen == ["work"]


def test_a_signal_waits_until_texts_that_belong_together_are_replaced(tmp_path, sent_within):
    sides = [tmp_path / "text.xx", tmp_path / "text.yy"]
    for side in sides:
        side.write_text("old\n")
    seen = []
    sent_within("replace", lambda: seen.append([side.read_text() for side in sides]))
    write_texts({side: ["new\n"] for side in sides})
    assert seen == [["new\n", "new\n"]]


@pytest.mark.parametrize("renames_before", [1, 2])
@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_a_folder_is_replaced_or_stays(tmp_path, monkeypatch, error, renames_before):
    """Whatever ends the process behind the first of two renames, or behind both."""
    for name in ("work", "target"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "holds").write_text(name)
    renames, rename = [], os.rename

    def interrupted(source, target):
        rename(source, target)
        renames.append(target)
        if len(renames) == renames_before:
            raise error

    monkeypatch.setattr(atomic_files.os, "rename", interrupted)
    with pytest.raises(error):
        atomic_files.replace_folder(str(tmp_path / "work"), str(tmp_path / "target"))
    content = (tmp_path / "target" / "holds").read_text()
    assert content == ("target" if renames_before == 1 else "work")
    assert not any(path.name.startswith(".") for path in tmp_path.iterdir())


@pytest.mark.parametrize("is_there", [True, False])
def test_the_folder_behind_a_link_is_replaced(tmp_path, is_there):
    """As `atomic_path` does with a file: the link may lead to another disk."""
    target, link = tmp_path / "disk" / "target", tmp_path / "link"
    (target if is_there else target.parent).mkdir(parents=True)
    link.symlink_to(target)
    with atomic_files.folder_beside(os.path.realpath(link)) as work:
        assert os.path.dirname(work) == str(target.parent)
        Path(work, "holds").write_text("work")
        atomic_files.replace_folder(work, str(link))
    assert link.is_symlink() and (target / "holds").read_text() == "work"
    assert [path.name for path in target.parent.iterdir()] == ["target"]


def test_ctrl_c_between_two_writes_of_torch_is_no_other_error(tmp_path, monkeypatch):
    """torch.save ends the file all the same, which fails, and its error hides the first one."""
    write = atomic_files.ErrorRecordingFile.write
    calls = []

    def interrupted(file, chunk):
        calls.append(chunk)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return write(file, chunk)

    monkeypatch.setattr(atomic_files.ErrorRecordingFile, "write", interrupted)
    with pytest.raises(KeyboardInterrupt):
        with atomic_files.atomic_write(str(tmp_path / "model.pt")) as file:
            torch.save({"weight": torch.zeros(9)}, file)
    assert not list(tmp_path.iterdir())
