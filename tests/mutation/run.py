"""Mutation testing: changes lines of the package one at a time and counts the unnoticed changes.

``make mutation PACKAGE=dual`` mutates the modules of targets.py that belong to a package, runs
their tests on a copy of the repository, and prints a table and the surviving changes. Nothing in
the working tree is written but the report.

Why Cosmic Ray and not mutmut: it changes a file's syntax tree and leaves the rest alone. mutmut
replaces every function by a dispatcher, which fairseq's registered classes, torch.autograd.Function
and the signatures that omegaconf and torch read do not survive. Of Cosmic Ray only the operators
are used; its runner starts a process for each mutant, here a fork of one that has torch imported.
"""

import argparse
import collections
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import operators
import plan
from cosmic_ray.mutating import mutate_code
from targets import TESTS

ROOT = Path(__file__).resolve().parents[2]
COPIED = ("fairseq_ext", "tests", "examples", "docs", "pyproject.toml", "setup.py", "README.md")


def arguments(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--package", help="dual, duo, ..., or part of a file's name (default: all)")
    parser.add_argument("--count", type=int, default=15, help="mutants a file (default: 15)")
    parser.add_argument("--seed", type=int, default=1, help="of the sample (default: 1)")
    parser.add_argument(
        "--tests", nargs="+", action="extend", help="instead of those of targets.py"
    )
    parser.add_argument("--again", type=Path, help="results file: run its survivors once more")
    parser.add_argument("--results", type=Path, default=ROOT / "build" / "mutation.jsonl")
    parser.add_argument("--list", action="store_true", help="print the mutants, run nothing")
    return parser.parse_args(argv)


def chosen(package):
    """The files of targets.py whose path names the package; ValueError if there is none."""
    files = [path for path in TESTS if not package or package in path]
    if not files:
        packages = sorted({path.split("/")[1] for path in TESTS})
        raise ValueError(f"--package {package}: no file of it is tested; packages: {packages}")
    return files


def mutants_of(args):
    if args.again is None:
        for path in chosen(args.package):
            yield from plan.sample(ROOT, path, args.count, args.seed)
        return
    for record in read(args.again):
        if record.get("outcome") == "survived":
            mutant = plan.Mutant(**record["mutant"])
            if not args.package or args.package in mutant.path:
                yield mutant


def tasks_for(mutants, tests=None):
    """The worker's tasks: before the mutants of a file its tests on the file as it is."""
    last = None
    for mutant in mutants:
        named = tests or TESTS[mutant.path]
        if mutant.path != last:
            yield {"path": mutant.path, "tests": named}
            last = mutant.path
        source = (ROOT / mutant.path).read_text(encoding="utf-8")
        try:
            text = mutant.applied_to(source)
        except ValueError as error:
            print(f"left out: {error}", file=sys.stderr)
            continue
        yield {"path": mutant.path, "tests": named, "text": text, "mutant": plan.as_record(mutant)}


def read(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def run(tasks, results):
    """The worker on a copy of the repository; its records."""
    results.parent.mkdir(parents=True, exist_ok=True)
    results.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(prefix="mutation") as folder:
        copy = Path(folder, "repository")
        for name in COPIED:
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, copy / name)
            else:
                shutil.copy(ROOT / name, copy / name)
        for module in ROOT.glob("_fairseq_ext_*.py"):
            shutil.copy(module, copy)
        listed = Path(folder, "tasks.jsonl")
        listed.write_text("".join(json.dumps(task) + "\n" for task in tasks), encoding="utf-8")
        # the copy comes before the installed package, also in the commands that tests start
        variables = {**os.environ, "PYTHONPATH": str(copy), "OMP_NUM_THREADS": "1"}
        variables.setdefault("FAIRSEQ_EXT_DATA", str(ROOT.parent / "shared" / "data"))
        worker = copy / "tests" / "mutation" / "worker.py"
        command = [sys.executable, worker, listed, results.resolve()]
        subprocess.run(command, cwd=copy, env=variables, check=True)
    return read(results)


def table(records):
    """Mutants, killed, survived and timeouts of each file."""
    counts = collections.defaultdict(collections.Counter)
    for record in records:
        if "mutant" in record:
            counts[record["mutant"]["path"]][record["outcome"]] += 1
    total = sum(counts.values(), collections.Counter())
    lines = [f"{'module':<48}{'mutants':>8}{'killed':>8}{'survived':>9}{'timeout':>8}"]
    for path, count in [*counts.items(), ("all", total)]:
        name = path.replace("fairseq_ext/", "")
        columns = count["killed"], count["survived"], count["timeout"]
        lines.append("{:<48}{:>8}{:>8}{:>9}{:>8}".format(name, sum(columns), *columns))
    share = 100 * (1 - total["survived"] / max(sum(total.values()), 1))
    return "\n".join([*lines, f"killed or timed out: {share:.1f}%"])


def survivors(records):
    """Where and what, for each mutant that no test noticed."""
    for record in records:
        if record.get("outcome") == "survived":
            mutant = plan.Mutant(**record["mutant"])
            yield f"\n{mutant.path}:{mutant.line} {mutant.operator}"
            yield from mutant.changed()


def check_operators():
    """The examples that our operators give of themselves."""
    for kind in operators.OWN.values():
        for example in kind.examples():
            code = mutate_code(example.pre_mutation_code, kind(), example.occurrence)
            if code != example.post_mutation_code:
                raise AssertionError(f"{kind.__name__}: {code!r}, not {example}")


def main(argv=None):
    args = arguments(argv)
    check_operators()
    mutants = list(mutants_of(args))
    if args.list:
        for mutant in mutants:
            print(f"\n{mutant.path}:{mutant.line} {mutant.operator}", *mutant.changed(), sep="\n")
        return
    records = run(list(tasks_for(mutants, args.tests)), args.results)
    print(table(records), *survivors(records), sep="\n")


if __name__ == "__main__":
    try:
        main()
    except ValueError as error:
        raise SystemExit(f"mutation: {error}") from error
