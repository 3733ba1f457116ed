"""Where the installed fairseq comes from, and how it differs from the release 0.12.2.

`fairseq-0.12.2.sha256` has the checksum of every Python file of the release, its examples apart.
Nothing here imports fairseq: the report has to be complete where that fails.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
from importlib import machinery, metadata
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

RELEASE = "0.12.2"
CHECKSUMS = Path(__file__).with_name(f"fairseq-{RELEASE}.sha256")
# characters of a checksum that are stored
LENGTH = 16
# written when fairseq is built
BUILT = "fairseq/version.py"
# compiled modules without which no batch is made and no block of text is cut
COMPILED = ("fairseq/data/data_utils_fast", "fairseq/data/token_block_utils_fast")
# files that the main branch has since the release
ON_MAIN = ("fairseq/criterions/speech_dlm_criterion.py", "fairseq/tasks/speech_dlm_task.py")


class Origin(NamedTuple):
    """folder: where `fairseq` and `fairseq_cli` lie. source: how they came there, as words.

    name, version: of the distribution, "" if there is none.
    """

    folder: Path
    name: str
    version: str
    source: str


class Difference(NamedTuple):
    """Files relative to the folder: changed, missing, and those that the release has not."""

    changed: list[str]
    missing: list[str]
    more: list[str]

    @property
    def is_release(self) -> bool:
        """True if every file of the release is there as it was."""
        return not self.changed and not self.missing


def find_origin() -> Origin | None:
    """Return where fairseq comes from, None if there is none."""
    spec = importlib.util.find_spec("fairseq")
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).resolve().parents[1]
    for distribution in metadata.distributions():
        if _holds_fairseq(distribution):
            source = _source(distribution, folder)
            version = distribution.version or ""  # None where its metadata lack it
            return Origin(folder, _name(distribution), version, source)
    return Origin(folder, "", _written_version(folder), "a folder without metadata (PYTHONPATH?)")


def _holds_fairseq(distribution: metadata.Distribution) -> bool:
    """True if a distribution holds the package, whatever its own name."""
    try:
        packages = (distribution.read_text("top_level.txt") or "").split()
    except ValueError:  # no UTF-8
        packages = []
    return "fairseq" in packages or _name(distribution) == "fairseq"


def _name(distribution: metadata.Distribution) -> str:
    """Return the name of a distribution, "" if its metadata cannot be read."""
    try:
        return distribution.metadata["Name"] or ""
    except (KeyError, TypeError, ValueError):
        return ""


def _source(distribution: metadata.Distribution, folder: Path) -> str:
    """Return how a distribution came to the folder where fairseq lies."""
    place = Path(str(distribution.locate_file(""))).resolve()
    try:
        url = json.loads(distribution.read_text("direct_url.json") or "{}")
    except ValueError:
        url = {}
    address = str(url.get("url", ""))
    if address.startswith("file://"):
        address = unquote(address[len("file://") :])
    if url.get("dir_info", {}).get("editable"):
        return f"editable, from {address}"
    if place != folder:
        return f"{folder}, which comes before the installed one"
    if "vcs_info" in url:
        commit = str(url["vcs_info"].get("commit_id", ""))[:10]
        return f"{url['vcs_info'].get('vcs', 'git')}, {address} at {commit}"
    if address:
        return f"installed from {address}"
    # with `setup.py develop` the metadata lies beside the sources
    is_clone = (folder / "setup.py").is_file()
    return f"editable, from {folder}" if is_clone else "from a package index"


def _written_version(folder: Path) -> str:
    """Return the version that fairseq's own files name, "" if none does."""
    file = folder / "fairseq" / "version.txt"
    return file.read_text(encoding="utf-8").strip() if file.is_file() else ""


def checksums(folder: Path) -> dict[str, str]:
    """Return {file: checksum} of the Python files of fairseq in a folder, its examples left out."""
    sums = {}
    for package in ("fairseq", "fairseq_cli"):
        for path in sorted((folder / package).rglob("*.py")):
            name = path.relative_to(folder).as_posix()
            if name != BUILT and not name.startswith("fairseq/examples/"):
                sums[name] = hashlib.sha256(path.read_bytes()).hexdigest()[:LENGTH]
    return sums


def released_checksums() -> dict[str, str]:
    """Return {file: checksum} of the release."""
    lines = CHECKSUMS.read_text(encoding="utf-8").splitlines()
    return {name: checksum for checksum, name in (line.split("  ") for line in lines)}


def difference(folder: Path) -> Difference:
    """Return how the fairseq of a folder differs from the release."""
    release, present = released_checksums(), checksums(folder)
    return Difference(
        [name for name in release if name in present and present[name] != release[name]],
        [name for name in release if name not in present],
        [name for name in present if name not in release],
    )


def uncompiled(folder: Path) -> list[str]:
    """Return the modules of COMPILED that are not there for this version of Python."""
    suffixes = machinery.EXTENSION_SUFFIXES
    return [
        module
        for module in COMPILED
        if not any((folder / f"{module}{suffix}").is_file() for suffix in suffixes)
    ]


def is_older(folder: Path) -> bool:
    """True if the fairseq in a folder is a fork of 0.10 or earlier, as `compat` tells them."""
    return not (folder / "fairseq" / "models" / "transformer").is_dir()


def kind(version: str, files: Difference) -> str:
    """Return what a fairseq is, as words, from its version and its files."""
    if files.is_release:
        return "the release, unchanged"
    if version.startswith("1.0.0a0") or any(name in files.more for name in ON_MAIN):
        return "the main branch or a fork of it"
    if version and version != RELEASE:
        return f"not the release {RELEASE}"
    return "a fork or an edited copy"
