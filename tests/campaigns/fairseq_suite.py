"""Run fairseq's own tests, of a checkout, on the installed fairseq; write what passed.

    PYTHONPATH=tests python -m campaigns.fairseq_suite CHECKOUT --into build/fairseq-tests.md

The checkout is one of https://github.com/facebookresearch/fairseq at the tag v0.12.2. Its package
is not used: its tests run in a folder of their own, on what is installed, which the layer patches.
With --plain PYTHON, an interpreter with fairseq and without this package, they run there as well.
What fails there too is called fairseq's own failure.
"""

from __future__ import annotations

import argparse
import datetime
import os
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import NamedTuple

OUTCOMES = ("passed", "failed", "skipped")
PATTERN = "test_*.py"


class Result(NamedTuple):
    """What became of a file: {test: one of OUTCOMES}, and a problem of the whole file."""

    outcomes: dict[str, str]
    problem: str = ""

    def names(self, outcome: str) -> list[str]:
        """Return the names of the tests that ended so."""
        return sorted(name for name, present in self.outcomes.items() if present == outcome)


def lay_out(checkout: Path, folder: Path) -> list[str]:
    """Copy the tests of a checkout into a folder; return their files, relative to it.

    Their modules import ``tests.utils`` and, some of them, ``examples`` and ``scripts``.
    """
    tests = checkout / "tests"
    files = sorted(path.relative_to(checkout).as_posix() for path in tests.rglob(PATTERN))
    if not files:
        raise SystemExit(
            f"fairseq-tests: SOURCE={checkout}: there is no tests/{PATTERN}; allowed: a checkout "
            "of fairseq v0.12.2 (the releases on PyPI have no tests)"
        )
    shutil.copytree(tests, folder / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "tests" / "__init__.py").touch()
    for name in ("examples", "scripts"):
        if (checkout / name).is_dir():
            (folder / name).symlink_to((checkout / name).resolve())
    return files


def run_file(python: Path, file: str, folder: Path, seconds: int) -> Result:
    """Return what became of a file of tests; each has a process of its own, which may crash."""
    report = folder / "report.xml"
    report.unlink(missing_ok=True)
    command = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", "."]
    command += ["--junit-xml", str(report), file]
    variables = {**os.environ, "PYTHONPATH": str(folder)}
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=variables,
            timeout=seconds,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        return Result({}, f"not finished after {seconds} s")
    if not report.exists():
        return Result({}, f"ended with status {done.returncode}")
    outcomes = read_report(report)
    # 5: there is no test in it
    problem = "" if outcomes or done.returncode == 5 else f"ended with status {done.returncode}"
    return Result(outcomes, problem)


def read_report(report: Path) -> dict[str, str]:
    """Return {name: one of OUTCOMES} of a JUnit report."""
    outcomes = {}
    for case in ElementTree.parse(report).iter("testcase"):
        kinds = {child.tag for child in case}
        outcome = "failed" if kinds & {"failure", "error"} else "passed"
        if outcome == "passed" and "skipped" in kinds:
            outcome = "skipped"
        # an error while a file is imported has no class
        name = f"{case.get('classname', '').rpartition('.')[2]}::{case.get('name')}"
        outcomes[name.removeprefix("::")] = outcome
    return outcomes


def run_all(checkout: Path, python: Path, seconds: int) -> dict[str, Result]:
    """Return {file: what became of it} of all tests of a checkout with an interpreter."""
    with tempfile.TemporaryDirectory(prefix="fairseq-tests-") as place:
        folder = Path(place)
        results = {}
        for file in lay_out(checkout, folder):
            results[file] = run_file(python, file, folder, seconds)
            counts = [f"{len(results[file].names(outcome))} {outcome}" for outcome in OUTCOMES]
            print(f"fairseq-tests: {file}: {', '.join(counts)} {results[file].problem}", flush=True)
        return results


def own_failures(results: dict[str, Result], plain: dict[str, Result]) -> set[tuple[str, str]]:
    """Return (file, test) of what fails with and without the layer."""
    return {
        (file, name)
        for file, result in results.items()
        for name in result.names("failed")
        if file in plain and name in plain[file].names("failed")
    }


def table(results: dict[str, Result], plain: dict[str, Result]) -> str:
    """Return the page: the sums, a row of each file, and the names of what failed."""
    of_fairseq = own_failures(results, plain)
    sums = {
        outcome: sum(len(result.names(outcome)) for result in results.values())
        for outcome in OUTCOMES
    }
    lines = [
        f"fairseq's tests with the layer, {datetime.date.today()}, Python "
        f"{sys.version.split()[0]}: {sums['passed']} passed, {sums['failed']} failed, "
        f"{sums['skipped']} skipped, in {len(results)} files. "
        + (f"Of the failures {len(of_fairseq)} happen without the layer too." if plain else ""),
        "",
        "| file | passed | failed | skipped | without the layer: passed | failed |",
        "|---|---|---|---|---|---|",
    ]
    for file, result in results.items():
        cells = [str(len(result.names(outcome))) for outcome in OUTCOMES]
        beside = plain.get(file)
        cells += [str(len(beside.names(name))) if beside else "-" for name in ("passed", "failed")]
        lines.append(f"| `{file}` | {' | '.join(cells)} |")
    failed = [(file, name) for file, result in results.items() for name in result.names("failed")]
    has_failures = failed or any(result.problem for result in results.values())
    lines += ["", "Failed:" if has_failures else "No test failed.", ""]
    for file, name in failed:
        remark = " (without the layer too)" if (file, name) in of_fairseq else ""
        lines.append(f"- `{file}` {name}{remark}")
    problems = {file: result.problem for file, result in results.items() if result.problem}
    lines += [f"- `{file}` {problem}" for file, problem in problems.items()]
    return "\n".join(lines).rstrip() + "\n"


def main() -> int:
    """Run; the status is 1 if something fails that does not fail without the layer."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkout", type=Path, help="checkout of fairseq v0.12.2")
    parser.add_argument("--plain", type=Path, help="interpreter with fairseq, without this package")
    parser.add_argument("--seconds", type=int, default=1800, help="limit of a file")
    parser.add_argument("--into", type=Path, help="file that gets the table")
    args = parser.parse_args()
    results = run_all(args.checkout, Path(sys.executable), args.seconds)
    plain = run_all(args.checkout, args.plain, args.seconds) if args.plain else {}
    text = table(results, plain)
    print(text)
    if args.into:
        args.into.parent.mkdir(parents=True, exist_ok=True)
        args.into.write_text(text, encoding="utf-8")
    failed = sum(len(result.names("failed")) + bool(result.problem) for result in results.values())
    return 1 if failed > len(own_failures(results, plain)) else 0


if __name__ == "__main__":
    sys.exit(main())
