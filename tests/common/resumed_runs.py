"""Runs that go on from a checkpoint of another one."""

import shutil


def resumed(folder, other, name):
    """Return the folder ``other``, in which a run goes on from the checkpoint ``name``."""
    other.mkdir()
    shutil.copy(folder / name, other / "checkpoint_last.pt")
    return other
