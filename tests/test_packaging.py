"""The wheel and the source archive: what they hold, and that pip and uv install them anywhere.

The slow tests need a package index, and the interpreters and installers that they name; each skips
with a reason without them.
"""

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from email.parser import HeaderParser
from pathlib import Path

import pytest

import fairseq_ext

REPOSITORY = Path(__file__).resolve().parents[1]
START = "zz_fairseq_ext.pth"
NAME = f"fairseq_ext-{fairseq_ext.__version__}"
# tracked by git and in no archive: how this project is tested where it is developed
NOT_PACKED = (".ci/", ".github/", ".gitignore")
# made by setuptools, in the source archive
MADE = ("PKG-INFO", "setup.cfg", "fairseq_ext.egg-info/")


def command(*words, cwd, fails=False, **variables):
    """The output of a command, which must end with status 0, or not."""
    environment = {**os.environ, **variables}
    environment.pop("PYTHONPATH", None)
    done = subprocess.run(
        [str(word) for word in words],
        cwd=cwd,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=False,
        timeout=1800,
    )
    assert (done.returncode != 0) == fails, f"{words}\n{done.stdout[-4000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def tracked():
    """The files that git tracks, relative to the repository."""
    if shutil.which("git") is None or not (REPOSITORY / ".git").exists():
        pytest.skip("no git, or no clone: nothing says which files belong to the project")
    names = command("git", "ls-files", cwd=REPOSITORY).splitlines()
    return [name for name in names if (REPOSITORY / name).is_file()]


@pytest.fixture(scope="module")
def archives(tracked, tmp_path_factory):
    """Paths of the wheel and of the source archive, from a copy of what git tracks."""
    folder = tmp_path_factory.mktemp("packaging")
    for name in tracked:
        path = folder / "clone" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(REPOSITORY / name, path)
    code = "from setuptools import build_meta as b; b.build_sdist('..'); b.build_wheel('..')"
    command(sys.executable, "-c", code, cwd=folder / "clone")
    (wheel,) = folder.glob("*.whl")
    (source,) = folder.glob("*.tar.gz")
    return wheel, source


def test_the_wheel_is_the_package_and_the_start_file(archives, tracked):
    with zipfile.ZipFile(archives[0]) as wheel:
        names = {name for name in wheel.namelist() if ".dist-info/" not in name}
    expected = {name for name in tracked if name.startswith("fairseq_ext/")}
    assert names == expected | {START, "_fairseq_ext_hook.py", "_fairseq_ext_cli.py"}
    assert {"fairseq_ext/py.typed", "fairseq_ext/dual/README.md"} <= names


def test_the_source_archive_is_what_git_tracks(archives, tracked):
    with tarfile.open(archives[1]) as source:
        names = {m.name.partition("/")[2] for m in source.getmembers() if m.isfile()}
    expected = {name for name in tracked if not name.startswith(NOT_PACKED)}
    assert {name for name in names if not name.startswith(MADE)} == expected


def test_the_metadata_is_whole(archives):
    with zipfile.ZipFile(archives[0]) as wheel:
        metadata = HeaderParser().parsestr(wheel.read(f"{NAME}.dist-info/METADATA").decode("utf-8"))
        scripts = wheel.read(f"{NAME}.dist-info/entry_points.txt").decode("utf-8")
        licence = [name for name in wheel.namelist() if name.endswith("LICENSE")]
    assert metadata["Name"] == "fairseq-ext" and metadata["Version"] == fairseq_ext.__version__
    assert "MIT" in (metadata["License"] or metadata["License-Expression"])
    assert metadata["Requires-Python"] == ">=3.9" and metadata["Summary"]
    assert "Typing :: Typed" in metadata.get_all("Classifier")
    assert metadata.get_payload().lstrip().startswith("# fairseq-ext")
    assert "fairseq-ext = _fairseq_ext_cli:main" in scripts
    assert len(licence) == 1


def test_a_file_that_is_left_out_would_be_found(archives, tracked):
    with pytest.raises(AssertionError):
        test_the_wheel_is_the_package_and_the_start_file(archives, [*tracked, "fairseq_ext/x.json"])
    with pytest.raises(AssertionError):
        test_the_source_archive_is_what_git_tracks(archives, [*tracked, "docs/x.csv"])


# ------------------------------------------------------------------ installed, slow

# installers: (name, interpreter, what pip is asked for first)
INSTALLERS = {
    "old pip": ("python3.9", ["pip==20.3.4", "setuptools==58.1.0", "wheel==0.37.1"]),
    "today's pip": (sys.executable, ["--upgrade", "pip"]),
    "uv": (sys.executable, ["--upgrade", "uv"]),
}
# what torch and fairseq import beside the requirements of fairseq-ext
OF_TORCH = (
    *("torch", "torchgen", "functorch", "sympy", "mpmath"),
    *("networkx", "jinja2", "markupsafe", "filelock", "fsspec"),
)
HOOKED = """
import sys
assert [name for name in sys.modules if "fairseq" in name] == ["_fairseq_ext_hook"]
import hydra
assert "fairseq_ext.compat" in sys.modules and "fairseq_ext" not in sys.modules
"""


def interpreter(name):
    """The path of a Python that starts; the test is skipped where there is none."""
    # where pyenv keeps those that are not on PATH
    folder = Path.home() / ".pyenv" / "versions"
    program = Path(name).name
    ours = sorted(folder.glob(f"{program.replace('python', '')}.*/bin/{program}"))
    for path in filter(None, [shutil.which(name), *ours]):
        if subprocess.run([path, "-c", ""], capture_output=True, check=False).returncode == 0:
            return path
    pytest.skip(f"no {name} in PATH that starts")


@pytest.fixture(params=INSTALLERS)
def environment(request, tmp_path):
    """A clean environment: (its folder, words that begin an installation)."""
    name, first = INSTALLERS[request.param]
    folder = tmp_path / "environment"
    command(interpreter(name), "-m", "venv", folder, cwd=tmp_path)
    pip = [folder / "bin" / "python", "-m", "pip", "--disable-pip-version-check", "install", "-q"]
    try:
        command(*pip, *first, cwd=tmp_path)
    except AssertionError as error:
        pytest.skip(f"no package index: {str(error).splitlines()[-1]}")
    if request.param == "uv":
        python = ["--python", folder / "bin" / "python"]
        return folder, [folder / "bin" / "uv", "pip", "install", "-q", *python]
    return folder, pip


def borrow_torch(folder):
    """Let an environment have torch, which is too large to download; True if it can be imported.

    The files of the running environment, or for another Python its name alone.
    """
    (packages,) = folder.glob("lib/python*/site-packages")
    name = "torch-2.8.0.dist-info"
    import torch

    outer = Path(torch.__file__).parents[1]
    same = packages.parent.name == f"python{sys.version_info[0]}.{sys.version_info[1]}"
    if same:
        for module in OF_TORCH:
            if (outer / module).is_dir():
                (packages / module).symlink_to(outer / module)
        for file in outer.glob("typing_extensions.py"):
            (packages / file.name).symlink_to(file)
        (metadata,) = outer.glob("torch-*.dist-info")
        name = metadata.name
    (packages / name).mkdir()
    version = name.split("-")[1][: -len(".dist")]
    text = f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\n"
    (packages / name / "METADATA").write_text(text, encoding="utf-8")
    (packages / name / "INSTALLER").write_text("test\n", encoding="utf-8")
    (packages / name / "RECORD").write_text("", encoding="utf-8")
    return same


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["wheel", "source archive"])
def test_it_installs_and_fairseq_works(environment, kind, archives, tmp_path):
    folder, install = environment
    has_torch = borrow_torch(folder)
    archive = archives[0] if kind == "wheel" else archives[1]
    command(*install, archive, cwd=tmp_path)
    scripts = folder / "bin"
    command(scripts / "python", "-c", HOOKED, cwd=tmp_path)
    user_dir = Path(command(scripts / "fairseq-ext", "user-dir", cwd=tmp_path).splitlines()[-1])
    assert folder in user_dir.parents and (user_dir / "py.typed").is_file()
    if kind == "wheel":
        command(*install, "--no-deps", "fairseq==0.12.2", cwd=tmp_path)
    if kind == "wheel" and has_torch:
        usage = command(scripts / "fairseq-train", "--help", cwd=tmp_path)
        assert "usage: fairseq-train" in usage
        report = command(scripts / "fairseq-ext", "doctor", cwd=tmp_path)
        assert report.rstrip().endswith("problems: none")


@pytest.mark.slow
def test_stock_fairseq_is_refused(tmp_path):
    """What today's pip says of fairseq's own requirements, and of no version; and the way out."""
    command(sys.executable, "-m", "venv", tmp_path / "new", cwd=tmp_path)
    pip = [tmp_path / "new" / "bin" / "python", "-m", "pip", "install"]
    try:
        command(*pip, "-q", "--upgrade", "pip", cwd=tmp_path)
    except AssertionError as error:
        pytest.skip(f"no package index: {str(error).splitlines()[-1]}")
    borrow_torch(tmp_path / "new")
    refused = command(*pip, "--dry-run", "fairseq==0.12.2", cwd=tmp_path, fails=True)
    assert "ResolutionImpossible" in refused and "has invalid metadata" in refused
    assert "fairseq 0.12.2 depends on omegaconf<2.1" in refused
    older = command(*pip, "--dry-run", "fairseq", cwd=tmp_path, fails=True)
    assert "No such file or directory: 'fairseq/version.txt'" in older
    command(*pip, "--dry-run", "--no-deps", "fairseq==0.12.2", cwd=tmp_path)
