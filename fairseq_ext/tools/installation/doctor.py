"""`fairseq-ext doctor`: what is installed, which patches act and why, and what is wrong.

Every finding is a row; what keeps commands from working is a problem with a remedy, and any
problem makes the exit status 1. fairseq is imported in child processes only, so that the report
is complete where that import fails.
"""

import importlib.util
import json
import subprocess
import sys
from argparse import ArgumentParser, Namespace
from importlib import metadata
from typing import Dict, List, Optional, Set, Tuple

from ...compat import checkpoints
from ...compat.patch_registry import all_patches
from ..commands import PACKAGE
from . import fairseq_origin, hardware

FAIRSEQ = fairseq_origin.RELEASE
PYTHONS = ((3, 9), (3, 14))
# distribution: what is without it
OPTIONAL = {
    "sentencepiece": "--bpe sentencepiece and the recipes' sub-words",
    "fastBPE": "--bpe fastbpe (needs cython and pip's --no-build-isolation)",
    "ctranslate2": "fairseq-ext export --to ctranslate2",
    "matplotlib": "fairseq-ext plot",
    "nltk": "fairseq-ext linearise tree",
    "penman": "fairseq-ext linearise amr",
    "tensorboardX": "fairseq-train --tensorboard-logdir",
}
# files of each kind that are named
SHOWN = 4
# of compat/checkpoints
SAFETY_MODULES = ("data_only", "evaluated_settings", "external_files")
CORE = ("torch", "fairseq", "hydra-core", "omegaconf", "numpy", "sacrebleu")

# what a stock command does first, with nothing of ours on the command line
STOCK_PROBE = """
import sys
import fairseq_cli.train
print("_fairseq_ext_hook" in sys.modules)
"""
# what `--user-dir` does, then what became of the patches
OWN_PROBE = """
import json, sys
sys.path.insert(0, sys.argv[1])
import fairseq_ext
from fairseq_ext import compat
import fairseq_cli.generate, fairseq_cli.score, fairseq_cli.train
import importlib
from fairseq_ext.compat.patch_registry import AFTER, all_patches
for patch in all_patches():
    for name in patch.modules:
        if patch.moment == AFTER and name.startswith(("fairseq.", "fairseq_cli.")):
            if not name.startswith("fairseq.examples."):
                try:
                    importlib.import_module(name)
                except ImportError:
                    pass  # of a fork, or one that needs other packages
import torch, torch.utils.data
print(json.dumps([list(row) for row in compat.status()]))
"""


class Report:
    """Rows to print as they come, and the problems for the end."""

    def __init__(self) -> None:
        self.lines: List[str] = []
        self.problems: List[Tuple[str, str]] = []

    def section(self, title: str) -> None:
        """Begin a section."""
        self.lines += ["", title]

    def row(self, name: str, value: str, note: str = "") -> None:
        """Add a row: a name, its value and what there is to say about it."""
        self.lines.append(f"  {name:<18}  {value:<12}  {note}".rstrip())

    def problem(self, what: str, remedy: str) -> None:
        """Add a problem and its remedy, to be printed at the end."""
        self.problems.append((what, remedy))


def add_arguments(parser: ArgumentParser) -> None:
    """Add no options."""


def installed_version(distribution: str) -> Optional[str]:
    """Return the version of a distribution, or None."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def versions(report: Report) -> None:
    """Report Python and the distributions that everything rests on."""
    report.section("versions")
    low, high = (".".join(map(str, version)) for version in PYTHONS)
    report.row("python", ".".join(map(str, sys.version_info[:3])), sys.executable)
    if not PYTHONS[0] <= sys.version_info[:2] <= PYTHONS[1]:
        report.problem(
            f"Python {sys.version.split()[0]} is outside {low} to {high}",
            f"make an environment with Python {low} to {high}",
        )
    for name in CORE:
        present = installed_version(name)
        # a fork may have another name
        is_elsewhere = name == "fairseq" and importlib.util.find_spec("fairseq") is not None
        report.row(name, present or ("see below" if is_elsewhere else "missing"))
    if importlib.util.find_spec("fairseq") is None:
        report.problem("fairseq is missing", f"pip install --no-deps fairseq=={FAIRSEQ}")


def origin(report: Report) -> None:
    """Report where fairseq comes from, and how its files differ from the release."""
    report.section("fairseq")
    place = fairseq_origin.find_origin()
    if place is None:
        return
    files = fairseq_origin.difference(place.folder)
    report.row(place.name or "fairseq", place.version or "?", place.source)
    report.row("folder", str(place.folder))
    report.row("it is", fairseq_origin.kind(place.version, files))
    if files.is_release:
        return
    patched = patched_files()
    for title, names in (("changed", files.changed), ("missing", files.missing)):
        first = sorted(names, key=lambda name: (name not in patched, name))[:SHOWN]
        more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
        count = f"{len(names)} of {len(fairseq_origin.released_checksums())} files"
        affected = f"{len(patched.intersection(names))} of them patched"
        report.row(title, count, f"{affected}: {', '.join(first)}{more}" if names else "")
    report.row("added", f"{len(files.more)} files")
    report.row("what follows", "the patches are applied, and those that do not fit are left out;")
    report.row("", f"only the release is tested: pip install --no-deps fairseq=={FAIRSEQ}")


def patched_files() -> Set[str]:
    """Return the files of fairseq that patches change."""
    modules = {name for patch in all_patches() for name in patch.modules}
    stems = {name.replace(".", "/") for name in modules}
    return {f"{stem}{end}" for stem in stems for end in (".py", "/__init__.py")}


def safety_patches() -> Set[str]:
    """Return the names of the patches that keep checkpoints and files from running code."""
    modules = {f"{checkpoints.__name__}.{name}" for name in SAFETY_MODULES}
    return {patch.name for patch in all_patches() if patch.function.__module__ in modules}


def requirements(report: Report) -> None:
    """Report what the distribution declares, checked like `pip check` does, extras left out."""
    try:
        declared = metadata.requires("fairseq-ext") or []
        from packaging.requirements import Requirement
    except metadata.PackageNotFoundError:
        report.row("fairseq-ext", "folder", "not installed by pip; stock commands lack the patches")
        return
    except ModuleNotFoundError:
        report.problem("packaging is missing", "pip install packaging")
        return
    report.row("fairseq-ext", metadata.version("fairseq-ext"), str(PACKAGE))
    for text in declared:
        requirement = Requirement(text)
        if requirement.marker and not requirement.marker.evaluate({"extra": ""}):
            continue
        present = installed_version(requirement.name)
        pinned = f"{requirement.name}{requirement.specifier}"
        if present is None:
            report.problem(f"{requirement.name} is missing", f'pip install "{pinned}"')
        elif not requirement.specifier.contains(present, prereleases=True):
            report.problem(
                f"{requirement.name} {present} is not {requirement.specifier}",
                f'pip install "{pinned}"',
            )


def optional(report: Report) -> None:
    """Report distributions that single features need; missing ones are no problem."""
    report.section("optional")
    for name, use in OPTIONAL.items():
        report.row(name, installed_version(name) or "absent", use)


def probe(code: str, *arguments: str) -> Tuple[Optional[str], Optional[str]]:
    """Run code in a child and return (its last line of output, None) or (None, what went wrong).

    Args:
        code: prints one line at least.
        arguments: its ``sys.argv[1:]``.
    """
    finished = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",  # not the locale's: messages name files
        errors="replace",  # a child in another locale than UTF-8 writes in that
        check=False,
    )
    if finished.returncode == 0:
        return finished.stdout.splitlines()[-1], None  # the lines before may come from imports
    errors = [line for line in finished.stderr.splitlines() if line.strip()]
    return None, errors[-1] if errors else f"status {finished.returncode}"


def hook(report: Report) -> None:
    """Report whether stock commands get the patches without any help."""
    report.section("stock fairseq commands")
    answer, error = probe(STOCK_PROBE)  # in a child, as a command starts
    active = answer == "True"
    report.row("start-up hook", "active" if active else "inactive", "the .pth file of this package")
    report.row("fairseq-train", "works" if error is None else "fails", error or "")
    if not active and error is None:
        error = "the start-up hook is not active"
    if error is not None:
        report.problem(
            f"fairseq-train by itself: {error}",
            "pip install fairseq-ext into this environment (a PYTHONPATH folder is not enough: "
            ".pth files are not read there), or use `python -m fairseq_ext run fairseq-train ...`",
        )


def patches(report: Report) -> None:
    """Report this package beside fairseq, and each patch with its reason."""
    report.section("patches, after importing fairseq-train, -generate and -score with this package")
    answer, error = probe(OWN_PROBE, str(PACKAGE.parent))
    if error is not None:
        report.row("import", "fails", error)
        report.problem(
            f"import fairseq_ext: {error}", "see the problems above; then run this again"
        )
        return
    place = fairseq_origin.find_origin()
    is_release = place is None or fairseq_origin.difference(place.folder).is_release
    counts: Dict[str, int] = {}
    for name, because, active, reason in json.loads(answer or "[]"):
        has_failed = reason.startswith("failed")
        state = "active" if active else "left out" if has_failed else "idle"
        counts[state] = counts.get(state, 0) + 1
        report.lines.append(f"  {state:<8}  {name}: {reason}")
        report.lines.append(f"            {because}")
        late = "before the patches were active" in reason
        # a fork may lack what a patch changes, but not what makes checkpoints safe
        if late or (has_failed and (is_release or name in safety_patches())):
            report.problem(
                f"the patch {name} {reason}",
                f"pip install --no-deps --force-reinstall fairseq=={FAIRSEQ}",
            )
    report.lines.append("  " + ", ".join(f"{n} {state}" for state, n in sorted(counts.items())))


def diagnose(args: Namespace) -> int:
    """Print the report and return 1 when there is a problem."""
    report = Report()
    # in the order in which one fault explains the next
    checks = [versions, requirements, origin, hook, patches, hardware.devices, optional]
    if importlib.util.find_spec("fairseq") is None:
        # already a problem with its remedy; that nothing works without it is no news
        checks = [versions, requirements, hardware.devices, optional]
    for check in checks:
        check(report)
    print("\n".join(report.lines[1:]))
    print(f"\nproblems: {len(report.problems) or 'none'}")
    for number, (what, remedy) in enumerate(report.problems, 1):
        print(f"  {number}. {what}\n     remedy: {remedy}")
    sys.stdout.flush()
    return 1 if report.problems else 0
