"""Installing with pip: what must be there afterwards, in both ways, and gone after removal."""

import ast
import shutil
import subprocess
import sys
import venv
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

import fairseq_ext

REPOSITORY = Path(__file__).resolve().parents[2]
SOURCES = (
    "setup.py",
    "pyproject.toml",
    "LICENSE",
    "MANIFEST.in",
    "README.md",
    "_fairseq_ext_hook.py",
    "_fairseq_ext_cli.py",
    "fairseq_ext",
)
START = "zz_fairseq_ext.pth"


def command(*words, cwd):
    words = [str(word) for word in words]
    done = subprocess.run(words, cwd=cwd, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture
def checkout(tmp_path):
    """A copy of what an installation is made from."""
    folder = tmp_path / "checkout"
    folder.mkdir()
    for name in SOURCES:
        path = REPOSITORY / name
        if path.is_dir():
            shutil.copytree(path, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        elif path.exists():
            shutil.copy(path, folder)
    return folder


def test_version_is_in_one_place(checkout):
    output = command(sys.executable, "setup.py", "--version", cwd=checkout)
    assert output.splitlines()[-1] == fairseq_ext.__version__


def test_requirements_do_not_name_fairseq():
    """Its own requirements cannot be met by pip 24.1 and later."""
    tree = ast.parse((REPOSITORY / "setup.py").read_text(encoding="utf-8"))
    (call,) = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and _name(n) == "setup"]
    keywords = {keyword.arg: keyword.value for keyword in call.keywords}
    required = ast.literal_eval(keywords["install_requires"])
    assert not [text for text in required if text.startswith("fairseq")]
    assert "torch>=1.13" in required


def _name(call):
    return getattr(call.func, "id", None)


def test_constraints_pin_every_line():
    lines = (REPOSITORY / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if not line.startswith("#")]
    assert all("==" in line for line in pins)
    names = {line.partition("==")[0].lower() for line in pins}
    assert {"torch", "fairseq", "hydra-core", "omegaconf", "fastbpe", "ctranslate2"} <= names


def test_pins_fit_the_pythons_that_they_are_for():
    """Python 3.11.0 and 3.11.2, of Debian 12, as well as the newest 3.11."""
    lines = (REPOSITORY / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [Requirement(line) for line in lines if not line.startswith("#")]
    for pin in pins:
        for python in ("3.11.0", "3.11.2", "3.11.15"):
            environment = {"python_version": "3.11", "python_full_version": python}
            if pin.marker is not None and not pin.marker.evaluate(environment):
                continue
            try:
                asked = metadata.distribution(pin.name).metadata["Requires-Python"]
            except metadata.PackageNotFoundError:  # of an extra
                continue
            assert SpecifierSet(asked or "").contains(python), (pin, python)


class Environment:
    """A fresh environment that sees the packages of the present one, but none of its .pth files."""

    def __init__(self, folder):
        venv.create(folder, with_pip=True, symlinks=True)
        self.scripts = folder / "bin"
        code = "import sysconfig; print(sysconfig.get_paths()['purelib'])"
        self.python = self.scripts / "python"
        self.packages = Path(command(self.python, "-c", code, cwd=folder).strip())
        outer = [path for path in sys.path if path.endswith("site-packages")]
        (self.packages / "zz_outer.pth").write_text("\n".join(outer) + "\n")
        self.elsewhere = folder / "elsewhere"
        self.elsewhere.mkdir()

    def pip(self, *words):
        return command(self.python, "-m", "pip", *words, cwd=self.elsewhere)

    def install(self, *words):
        self.pip("install", "--no-index", "--no-deps", "--no-build-isolation", *words)

    def run(self, code):
        return command(self.python, "-c", code, cwd=self.elsewhere).strip()


@pytest.fixture
def environment(tmp_path):
    return Environment(tmp_path / "environment")


def check_installed(environment):
    assert (environment.packages / START).read_text() == "import _fairseq_ext_hook\n"
    listed = environment.run(
        "from importlib import metadata; print(*metadata.files('fairseq-ext'), sep='\\n')"
    )
    assert listed.splitlines().count(START) == 1
    hooked = "import sys; print([m for m in sys.modules if 'fairseq' in m])"
    assert environment.run(hooked) == "['_fairseq_ext_hook']"
    code = "import fairseq_cli.train, fairseq_cli.generate, fairseq; print(fairseq.__version__)"
    assert environment.run(code).endswith("0.12.2")
    program = environment.scripts / "fairseq-ext"
    user_dir = Path(command(program, "user-dir", cwd=environment.elsewhere).strip())
    assert (user_dir / "__init__.py").is_file()
    usage = command(program, "run", "fairseq-score", "--help", cwd=environment.elsewhere)
    assert "usage: fairseq-score" in usage
    return user_dir


def check_removed(environment):
    environment.pip("uninstall", "-y", "fairseq-ext")
    left = [path.name for path in environment.packages.iterdir() if "fairseq_ext" in path.name]
    assert left == []


@pytest.mark.slow
def test_pip_install(environment, checkout):
    environment.install(checkout)
    user_dir = check_installed(environment)
    assert environment.packages in user_dir.parents
    assert (user_dir / "dual" / "README.md").is_file()
    check_removed(environment)


@pytest.mark.slow
def test_pip_install_editable(environment, checkout):
    environment.install("-e", checkout)
    assert check_installed(environment) == checkout / "fairseq_ext"
    check_removed(environment)


@pytest.mark.slow
def test_pip_install_source_archive(environment, checkout, tmp_path):
    code = f"from setuptools import build_meta; print(build_meta.build_sdist({str(tmp_path)!r}))"
    name = command(sys.executable, "-c", code, cwd=checkout).splitlines()[-1]
    environment.install(tmp_path / name)
    check_installed(environment)


@pytest.mark.slow
def test_wheel_holds_the_start_file_at_its_root(checkout, tmp_path):
    code = f"from setuptools import build_meta; print(build_meta.build_wheel({str(tmp_path)!r}))"
    name = command(sys.executable, "-c", code, cwd=checkout).splitlines()[-1]
    assert name.endswith("-py3-none-any.whl")
    names = set(zipfile.ZipFile(tmp_path / name).namelist())
    assert {START, "_fairseq_ext_hook.py", "_fairseq_ext_cli.py"} <= names
    assert "fairseq_ext/compat/import_hook.py" in names


@pytest.mark.slow
def test_target_folder_needs_run(environment, checkout, tmp_path):
    """No .pth file is read in a folder that PYTHONPATH names."""
    target = tmp_path / "target"
    environment.install("--target", target, checkout)
    code = (
        "import sys, runpy; sys.path.insert(0, sys.argv[1]); assert '_fairseq_ext_hook' not in "
        "sys.modules; sys.argv = ['x', 'run', 'fairseq-score', '--help']; "
        "runpy.run_module('fairseq_ext', run_name='__main__')"
    )
    output = command(environment.python, "-c", code, target, cwd=environment.elsewhere)
    assert "usage: fairseq-score" in output
