"""What killed writes leave is removed; what others write stays."""

import os
import subprocess
import sys

from fairseq_ext.compat import atomic_files


def test_what_dead_processes_left_is_removed(tmp_path):
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    here = atomic_files.host_name()
    gone = [f".checkpoint1.pt.{here}.{dead.pid}.part", ".a.pt.elsewhere.1.part", "b.pt.tmp"]
    kept = ["checkpoint1.pt", f".c.pt.{here}.{os.getppid()}.part", "notes.part", "x.tmp"]
    for name in (*gone, *kept):
        (tmp_path / name).write_text("")
    assert sorted(atomic_files.remove_leftovers(str(tmp_path))) == sorted(gone)
    assert sorted(os.listdir(tmp_path)) == sorted(kept)
