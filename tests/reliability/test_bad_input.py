"""Every bad input of the tables ends in one line that names it, and leaves nothing behind."""

import os

import pytest

from . import cases, check, forked, page
from .world import World

ALL = cases.all_cases()
# in the environment: write the tables of the page, after a run of some cases only their rows
WRITE = "FAIRSEQ_EXT_WRITE_PAGES"
REMEDY = f"run this file with {WRITE}=1 -m 'slow or not slow'"


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """The folder of data, checkpoints and damaged files; the commands are imported."""
    import torch

    forked.commands()
    torch.set_num_threads(1)
    return World(tmp_path_factory.mktemp("reliability") / "w")


@pytest.fixture(scope="module")
def rows():
    """The rows of the cases that ran; those without a fault are written to the page."""
    rows = []
    yield rows
    if os.environ.get(WRITE):
        (page.write if len(rows) == len(ALL) else page.write_some)(rows)


def _parameters():
    for case in ALL:
        marks = [] if case.is_quick else [pytest.mark.slow]
        yield pytest.param(case, id=f"{case.command} {case.system} {case.bad}", marks=marks)


@pytest.mark.parametrize("case", list(_parameters()))
def test_ends_in_one_line(world, rows, case):
    row, faults = check.ending(world, case)
    assert not faults, "\n".join(faults)
    rows.append(row)
    text = page.PAGE.read_text(encoding="utf-8")
    if page.is_comparable(text) and not os.environ.get(WRITE):
        assert page.table_row(row) in text, f"the page has another line; {REMEDY}"


def test_tables_are_large():
    assert len(ALL) >= 300
    assert 15 <= sum(case.is_quick for case in ALL) <= 30
    assert len({(case.command, case.system, case.bad) for case in ALL}) == len(ALL)


def test_page_has_every_case():
    text = page.PAGE.read_text(encoding="utf-8").split(page.BEGIN)[1].split(page.END)[0]
    if not text.strip():
        pytest.skip("the tables were never written")
    missing = [case.bad for case in ALL if page.code(case.bad) not in text]
    assert not missing, f"{REMEDY}: {missing[:5]}"


@pytest.mark.slow
@pytest.mark.parametrize("command", ["fairseq-generate", "fairseq-validate", "fairseq-interactive"])
def test_checkpoint_without_its_plugin(world, run, command):
    """A fresh process that was not given --user-dir is told that it needs it."""
    world.prepare(["bin", "models/dual/checkpoint_last.pt"])
    words = [command, "bin", "-s", "xx", "-t", "yy", "--cpu", "--batch-size", 4]
    words += ["--task", "translation"] if command == "fairseq-validate" else []
    words += ["--buffer-size", 4] if command == "fairseq-interactive" else []
    path = "models/dual/checkpoint_last.pt"
    log = run(*words, "--path", path, "--cpu", cwd=world.folder, fails=True)
    last = log.strip().splitlines()[-1]
    assert last.startswith(f"{command}: error: {path}: its ") and "--user-dir" in last
    assert "Traceback" not in log


def test_fresh_process(world, run):
    """The start-up hook alone, without the plugin, ends a stock command in one line."""
    log = run(
        *("fairseq-train", "missing", "--arch", "lstm", "--lr", -1),
        cwd=world.folder,
        fails=True,
        fresh=True,
    )
    assert log.strip().splitlines()[-1] == (
        "fairseq-train: error: --lr -1.0 is not allowed; allowed: at least 0"
    )
    assert "Traceback" not in log
