"""`fairseq-ext doctor`: what is installed, which patches act and why, and what is wrong.

Every finding is a row; what keeps commands from working is a problem with a remedy, and any
problem makes the exit status 1. fairseq is imported in child processes only, so that the report
is complete where that import fails.
"""

import importlib.util
import json
import sys
from argparse import ArgumentParser, Namespace
from importlib import metadata
from typing import Callable, Dict, List, Optional, Set, Tuple

from ...compat import checkpoints
from ...compat.patch_registry import all_patches
from ..commands import PACKAGE
from . import fairseq_origin, hardware
from .probing import missing_remedy, probe

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
# where the start-up hook is missing
ACTIVATE = (
    "pip install fairseq-ext into this environment (a PYTHONPATH folder is not enough: "
    ".pth files are not read there), or use `python -m fairseq_ext run fairseq-train ...`"
)
# the version of a distribution whose metadata cannot be read
DAMAGED = "damaged"
# files of each kind that are named
SHOWN = 4
# of compat/checkpoints
SAFETY_MODULES = ("data_only", "evaluated_settings", "external_files")
CORE = ("torch", "fairseq", "hydra-core", "omegaconf", "numpy", "sacrebleu")

# what a stock command does first, with nothing of ours on the command line
STOCK_PROBE = """
import fairseq_cli.train
print("imported")
"""
# whether this package's .pth file was read, also where the import of fairseq fails
HOOK_PROBE = 'print("_fairseq_ext_hook" in sys.modules)'
TORCH_PROBE = """
import torch
print(torch.ones(2, 2) @ torch.ones(2, 2))
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
        if (what, remedy) not in self.problems:  # several checks may meet the same
            self.problems.append((what, remedy))


def add_arguments(parser: ArgumentParser) -> None:
    """Add no options."""


def installed_version(distribution: str) -> Optional[str]:
    """Return the version of a distribution, None if it is missing, or DAMAGED."""
    try:
        # None where its files lack the version
        version: Optional[str] = metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None
    except (KeyError, TypeError, ValueError):  # no UTF-8 among them
        return DAMAGED
    return version or DAMAGED


def has_fairseq() -> bool:
    """True if there is a fairseq to import; a folder that an uninstallation left is none."""
    spec = importlib.util.find_spec("fairseq")
    return spec is not None and spec.origin is not None


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
        is_elsewhere = name == "fairseq" and has_fairseq()
        report.row(name, present or ("see below" if is_elsewhere else "missing"))
        check_metadata(report, name, present)
    if not has_fairseq():
        # pip believes its metadata, which may still be there
        force = "--force-reinstall " if installed_version("fairseq") else ""
        report.problem("fairseq is missing", f"pip install --no-deps {force}fairseq=={FAIRSEQ}")


def check_metadata(report: Report, name: str, version: Optional[str]) -> None:
    """Report a distribution whose metadata cannot be read."""
    if version == DAMAGED:
        report.problem(
            f"the metadata of {name} cannot be read",
            f"pip install --no-deps --force-reinstall {name}",
        )


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
    uncompiled = fairseq_origin.uncompiled(place.folder)
    if uncompiled:  # importing fairseq works without them, and a training begins
        report.problem(
            f"{', '.join(uncompiled)} in {place.folder}: not compiled for this Python",
            "build them there, python setup.py build_ext --inplace; or, if the folder only lies in "
            f"the way, start elsewhere; pip install --no-deps fairseq=={FAIRSEQ} compiles them",
        )
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
    if fairseq_origin.is_older(place.folder):
        report.row("what follows", "it is older than 0.12: patches for Python, torch and numpy are")
        report.row("", "applied, those for fairseq's own code are not, and --user-dir fairseq_ext")
        report.row("", f"needs the release: pip install --no-deps fairseq=={FAIRSEQ}")
        return
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
    version = installed_version("fairseq-ext")
    report.row("fairseq-ext", version or "?", str(PACKAGE))
    check_metadata(report, "fairseq-ext", version)
    for text in declared:
        requirement = Requirement(text)
        if requirement.marker and not requirement.marker.evaluate({"extra": ""}):
            continue
        present = installed_version(requirement.name)
        pinned = f"{requirement.name}{requirement.specifier}"
        if present is None:
            report.problem(f"{requirement.name} is missing", f'pip install "{pinned}"')
        elif present == DAMAGED:
            check_metadata(report, requirement.name, present)
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


def hook(report: Report) -> None:
    """Report whether stock commands get the patches without any help."""
    report.section("stock fairseq commands")
    active = probe(HOOK_PROBE)[0] == "True"
    _, error = probe(STOCK_PROBE)  # in a child, as a command starts
    report.row("start-up hook", "active" if active else "inactive", "the .pth file of this package")
    report.row("fairseq-train", "works" if error is None else "fails", error or "")
    if not active and error is None:
        error = "the start-up hook is not active"
    if error is None:
        return
    remedy = missing_remedy(error)
    if remedy is None and active:
        remedy = (
            "see the other problems; where none explains it: "
            f"pip install --no-deps --force-reinstall fairseq=={FAIRSEQ}"
        )
    report.problem(f"fairseq-train by itself: {error}", remedy or ACTIVATE)


def patches(report: Report) -> None:
    """Report this package beside fairseq, and each patch with its reason."""
    place = fairseq_origin.find_origin()
    if place is not None and fairseq_origin.is_older(place.folder):
        return  # `origin` has said which are applied
    report.section("patches, after importing fairseq-train, -generate and -score with this package")
    answer, error = probe(OWN_PROBE, str(PACKAGE.parent))
    if error is not None:
        report.row("import", "fails", error)
        report.problem(
            f"import fairseq_ext: {error}",
            missing_remedy(error) or "see the other problems; then run this again",
        )
        return
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


def devices(report: Report) -> None:
    """Report processors, unless torch itself fails or ends the process that imports it."""
    _, error = probe(TORCH_PROBE)
    if error is None:
        hardware.devices(report)
        return
    report.section("devices")
    report.row("torch", "fails", error)
    remedy = missing_remedy(error) or "pip install --force-reinstall torch"
    report.problem(f"import torch: {error}", remedy)


def run_check(check: Callable[[Report], None], report: Report) -> None:
    """Run a check; its own error is a problem, so that the report goes on."""
    try:
        check(report)
    except Exception as error:  # noqa: BLE001 (whatever a damaged installation makes of it)
        what = f"{check.__name__} is not complete: {type(error).__name__}: {error}"
        report.problem(what, "reinstall what the message names; pip check names what does not fit")


def diagnose(args: Namespace) -> int:
    """Print the report and return 1 when there is a problem."""
    report = Report()
    # in the order in which one fault explains the next
    checks = [versions, requirements, origin, hook, patches, devices, optional]
    if not has_fairseq():
        # already a problem with its remedy; that nothing works without it is no news
        checks = [versions, requirements, devices, optional]
    for check in checks:
        run_check(check, report)
    print("\n".join(report.lines[1:]))
    print(f"\nproblems: {len(report.problems) or 'none'}")
    for number, (what, remedy) in enumerate(report.problems, 1):
        print(f"  {number}. {what}\n     remedy: {remedy}")
    sys.stdout.flush()
    return 1 if report.problems else 0
