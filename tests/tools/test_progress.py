"""The file of progress of `fairseq-ext back-translate`, with which it goes on."""

import json

import pytest

from fairseq_ext.tools import UsageError
from fairseq_ext.tools.back_translation.pairs import SyntheticPair
from fairseq_ext.tools.back_translation.progress import Progress, digest


def test_progress_is_whole_at_every_moment(tmp_path):
    path, pairs = (
        tmp_path / "file.partial",
        [SyntheticPair("a", -1.0, None), SyntheticPair("b", -2.0, -3.0)],
    )
    progress = Progress(path, {"beam": 5}, force=False)
    progress.add(pairs)
    assert Progress(path, {"beam": 5}, force=False).pairs == pairs
    assert Progress(path, {"beam": 6}, force=True).pairs == []
    assert json.loads(path.read_text().splitlines()[0]) == {"beam": 6}
    assert digest(["a", "b"]) != digest(["a b"]) and digest(path) == digest(path)
    progress.remove()
    assert not path.exists()


@pytest.mark.parametrize(
    "content",
    [b"\xff\n", b"[1]\n", b"null\n", b"5\n", b"{\n", b'{"a": 1}\n[["x"]]\n', b'{"a": 1}\n7\n'],
)
def test_a_file_of_something_else_is_named(content, tmp_path):
    path = tmp_path / "bt.partial"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=r"bt.partial, line [12]: not written by this command"):
        Progress(path, {"a": 1}, force=False)
    assert path.read_bytes() == content


def test_two_processes_do_not_write_to_one_file(tmp_path):
    path = tmp_path / "bt.partial"
    first, second = (Progress(path, {"a": 1}, force=False) for _ in range(2))
    first.add([SyntheticPair("x", 0.5, None)])
    with pytest.raises(UsageError, match="another process writes to .*bt.partial as well"):
        second.add([SyntheticPair("y", 0.5, None)])


def test_a_folder_whose_files_have_changed_names_is_another(tmp_path):
    (tmp_path / "a").write_text("1")
    (tmp_path / "b").write_text("2")
    before = digest(tmp_path)
    (tmp_path / "a").write_text("2")
    (tmp_path / "b").write_text("1")
    swapped = digest(tmp_path)
    (tmp_path / "b").rename(tmp_path / "c")
    assert len({before, swapped, digest(tmp_path)}) == 3


def test_a_line_that_was_cut_is_dropped(tmp_path):
    path = tmp_path / "bt.partial"
    Progress(path, {"a": 1}, force=False).add([SyntheticPair("x", 0.5, None)])
    whole = path.read_bytes()
    path.write_bytes(whole + b'[["y", 0.')
    assert Progress(path, {"a": 1}, force=False).pairs == [SyntheticPair("x", 0.5, None)]
    assert path.read_bytes() == whole


def test_other_options_are_named(tmp_path):
    path = tmp_path / "bt.partial"
    Progress(path, {"beam": 5, "seed": 1}, force=False)
    with pytest.raises(UsageError, match="was begun with other beam; allowed: "):
        Progress(path, {"beam": 6, "seed": 1}, force=False)
    with pytest.raises(UsageError, match="none is not a folder"):
        Progress(tmp_path / "none" / "bt.partial", {}, force=False)
