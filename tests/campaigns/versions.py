"""Run the tests on several Pythons and versions of torch; write what passed into a table.

    python tests/campaigns/versions.py --torch 2.13.0 --torch 2.15.0 --into docs/versions.md

For each pair `make setup` makes an environment, which is removed afterwards. A pair without a wheel
of torch is left out. A row of the page stays until its pair is run again, so that machines which
have other Pythons can add theirs. With --quick, only the tests of what differs by version are run:
the column "tests" says which of both a row is of.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Iterator, NamedTuple, Sequence

REPOSITORY = Path(__file__).resolve().parents[2]
# {name of a selection: arguments of pytest}
SELECTIONS = {
    # without the tests that make environments themselves
    "all": (
        *("tests/compat", "tests/routed/test_training.py", "tests/test_user_dir.py"),
        *("tests/test_no_wait.py", "--deselect", "tests/compat/test_install.py"),
    ),
    # the parts of fairseq that broke with some version of Python, torch, numpy or hydra
    "quick": (
        "tests/test_no_wait.py",
        *(
            f"tests/compat/{place}"
            for place in (
                *("versions", "checkpoints", "test_import_hook.py", "test_patch_registry.py"),
                *("test_stored_checkpoints.py", "command_line/test_scoring.py"),
                *(
                    "data/test_speech_tasks.py",
                    "data/test_older_tasks.py",
                    "data/test_bart_tasks.py",
                ),
                *("optimizers/test_model_averages.py", "training/test_precision.py"),
            )
        ),
    ),
}
TORCHES = ("1.13.1", "2.5.1", "2.13.0", "2.15.0")
NAME = "versions"
HEAD = (
    "| Python | torch | numpy | hydra / omegaconf | tests | passed | failed | skipped | date |",
    "|---|---|---|---|---|---|---|---|---|",
)
ASK = """
import json, platform
from importlib.metadata import version
names = ("torch", "numpy", "hydra-core", "omegaconf")
print(json.dumps([platform.python_version(), *map(version, names)]))
"""


class Row(NamedTuple):
    """What became of one pair: the versions, which tests were run, and how many ended how."""

    python: str
    torch: str
    numpy: str
    hydra: str
    tests: str
    passed: int
    failed: int
    skipped: int
    date: str

    def line(self) -> str:
        """Return the row of the table."""
        return "| " + " | ".join(map(str, self)) + " |"

    def pair(self) -> tuple[str, str]:
        """Return what identifies a row: the minor version of Python, and the version of torch."""
        return ".".join(self.python.split(".")[:2]), self.torch.partition("+")[0]


def find_pythons() -> list[Path]:
    """Return an interpreter of every supported Python that is on PATH or made by pyenv."""
    bounds = re.search(r"\(3, (\d+)\) <= v < \(3, (\d+)\)", (REPOSITORY / "Makefile").read_text())
    assert bounds is not None
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    paths = []
    for minor in range(int(bounds.group(1)), int(bounds.group(2))):
        made_by_pyenv = sorted(pyenv.glob(f"3.{minor}.*/bin/python"))
        on_path = shutil.which(f"python3.{minor}")
        if made_by_pyenv:
            paths.append(made_by_pyenv[-1])
        elif on_path:
            paths.append(Path(on_path))
    return paths


def set_up(python: Path, torch: str, environment: Path) -> str:
    """Make an environment; return "" or the last lines of what went wrong."""
    command = ["make", "setup", f"PYTHON={python}", f"TORCH=torch=={torch}", f"VENV={environment}"]
    done = subprocess.run(
        command,
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return "" if done.returncode == 0 else done.stdout[-2000:]


def run_tests(environment: Path, selection: str, report: Path) -> Row:
    """Run a selection of tests in an environment; return its row. pytest prints what fails."""
    python = environment / "bin" / "python"
    asked = subprocess.run([python, "-c", ASK], stdout=subprocess.PIPE, check=True).stdout
    version, torch, numpy, hydra, omegaconf = json.loads(asked)
    variables = {**os.environ, "PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}"}
    variables.setdefault("OMP_NUM_THREADS", "1")
    command = [str(python), "-m", "pytest", "-n", "0", "-q", "-rfE", "-p", "no:cacheprovider"]
    command += ["--junit-xml", str(report), *SELECTIONS[selection]]
    report.unlink(missing_ok=True)  # of another pair
    subprocess.run(command, cwd=REPOSITORY, env=variables, check=False)
    today = str(datetime.date.today())
    hydra = f"{hydra} / {omegaconf}"
    return Row(version, torch, numpy, hydra, selection, *count_tests(report), today)


def count_tests(report: Path) -> tuple[int, int, int]:
    """Return how many tests of a JUnit report passed, failed and were skipped.

    A run that crashed before it wrote its report counts as one failure.
    """
    passed = failed = skipped = 0
    if not report.exists():
        print("versions: pytest ended without a report", flush=True)
        return 0, 1, 0
    for case in ElementTree.parse(report).iter("testcase"):
        outcomes = {child.tag for child in case}
        if outcomes & {"failure", "error"}:
            failed += 1
        elif "skipped" in outcomes:
            skipped += 1
        else:
            passed += 1
    return passed, failed, skipped


def read_rows(page: Path) -> list[Row]:
    """Return the rows that a page has between its markers."""
    rows = []
    for line in between_markers(page.read_text(encoding="utf-8"))[1].splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| ") and line != HEAD[0]:
            python, torch, numpy, hydra, tests, passed, failed, skipped, date = cells
            numbers = (int(passed), int(failed), int(skipped))
            rows.append(Row(python, torch, numpy, hydra, tests, *numbers, date))
    return rows


def between_markers(text: str) -> tuple[str, str, str]:
    """Return what precedes the table of a page, the table, and what follows it."""
    begin, end = f"<!-- begin {NAME} -->\n", f"\n<!-- end {NAME} -->"
    before, _, rest = text.partition(begin)
    table, marker, after = rest.partition(end)
    if not marker:
        raise SystemExit(f"versions: the page has no line <!-- begin {NAME} -->, or no end of it")
    return before + begin, table, end + after


def write_rows(page: Path, rows: Sequence[Row]) -> None:
    """Put rows into the page in place of those of the same pairs, ordered by version."""
    by_pair = {row.pair(): row for row in (*read_rows(page), *rows)}

    def order(row: Row) -> list[int]:
        return [int(number) for number in ".".join(row.pair()).split(".")]

    lines = [*HEAD, *(row.line() for row in sorted(by_pair.values(), key=order))]
    before, _, after = between_markers(page.read_text(encoding="utf-8"))
    new = page.with_suffix(".new")
    new.write_text(before + "\n".join(lines) + after, encoding="utf-8")
    new.replace(page)


def run_pair(python: Path, torch: str, folder: Path, selection: str) -> Row | str | None:
    """Return the row of a pair, None if torch has no wheel for it, or why its set-up failed."""
    environment = folder / "environment"
    shutil.rmtree(environment, ignore_errors=True)
    try:
        problem = set_up(python, torch, environment)
        if problem:
            has_wheel = "No matching distribution found for torch" not in problem
            reason = f"set-up failed: {problem}" if has_wheel else "there is no wheel of torch"
            print(f"versions: {python}, torch {torch}: {reason}", flush=True)
            return problem if has_wheel else None
        return run_tests(environment, selection, folder / "report.xml")
    finally:
        shutil.rmtree(environment, ignore_errors=True)


def main() -> int:
    """Run all pairs; the status is 1 if a test or a set-up failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", action="append", type=Path, help="default: all that are here")
    parser.add_argument("--torch", action="append", help=f"default: {', '.join(TORCHES)}")
    parser.add_argument("--environment", action="append", type=Path, default=[], help="as it is")
    parser.add_argument("--quick", action="store_true", help="the tests of what differs only")
    parser.add_argument("--folder", type=Path, default=REPOSITORY / "build" / "versions")
    parser.add_argument("--into", type=Path, help="page that gets the table")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    selection = "quick" if args.quick else "all"
    pairs = [
        (python, torch)
        for python in args.python or find_pythons()
        for torch in args.torch or TORCHES
    ]
    ran: Iterator[Row | str | None]
    if args.environment:
        report = args.folder / "report.xml"
        ran = (run_tests(environment, selection, report) for environment in args.environment)
    else:
        ran = (run_pair(python, torch, args.folder, selection) for python, torch in pairs)
    has_failed = False
    for row in ran:
        if isinstance(row, Row):
            print(row.line(), flush=True)
            if args.into:
                write_rows(args.into, [row])  # after each: a matrix takes hours
        has_failed |= row.failed > 0 if isinstance(row, Row) else row is not None
    return 1 if has_failed else 0


if __name__ == "__main__":
    sys.exit(main())
