"""`fairseq-ext doctor`: problems are found, and the remedy is told."""

import importlib.util
import json
import os
import shutil
from importlib import machinery
from importlib.machinery import PathFinder
from pathlib import Path

import pytest
from tools.commandline import cli

import fairseq_ext
from fairseq_ext.tools.installation import doctor

# those that keep files from running code, and others, one of them of a file named .._checkpoints
OF_SAFETY = ["checkpoints_hold_data_only", "settings_are_literals", "yaml_files_hold_data_only"]
NAMES_OF_PATCHES = ["bf16_help", "later_checkpoints_do_not_count", *OF_SAFETY]


def test_doctor_finds_a_healthy_installation(run):
    output = cli(run, "doctor")
    assert output.rstrip().endswith("problems: none")
    assert fairseq_ext.__version__ in output
    for word in ("hydra-core", "omegaconf", "OMP_NUM_THREADS", "bf16 on cpu", "sentencepiece"):
        assert word in output
    assert "  active  " in output


@pytest.mark.slow
def test_doctor_reports_a_broken_fairseq_with_the_remedy(run, tmp_path):
    broken = tmp_path / "fairseq_cli"
    broken.mkdir()
    (broken / "__init__.py").write_text("raise ImportError('broken on purpose')\n")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    output = cli(run, "doctor", env={"PYTHONPATH": path}, fails=True)
    assert "problems: 2" in output
    assert "broken on purpose" in output and "remedy: " in output


def missing(name):
    """A stand-in for `installed_version` that does not find `name`."""
    return lambda distribution: None if distribution == name else "1.0"


def test_doctor_names_what_is_missing(monkeypatch):
    monkeypatch.setattr(doctor, "installed_version", missing("fairseq"))
    monkeypatch.setattr(doctor.importlib.util, "find_spec", lambda name: None)
    report = doctor.Report()
    doctor.versions(report)
    assert report.problems == [("fairseq is missing", "pip install --no-deps fairseq==0.12.2")]


def test_doctor_names_requirements_that_are_not_met(monkeypatch):
    declared = ["torch>=1.13", "regex", 'matplotlib; extra == "plot"']
    monkeypatch.setattr(doctor.metadata, "requires", lambda name: declared)
    monkeypatch.setattr(doctor.metadata, "version", lambda name: "0.1.0")
    monkeypatch.setattr(doctor, "installed_version", missing("regex"))
    report = doctor.Report()
    doctor.requirements(report)
    assert report.problems == [
        ("torch 1.0 is not >=1.13", 'pip install "torch>=1.13"'),
        ("regex is missing", 'pip install "regex"'),
    ]


def test_doctor_refuses_another_python(monkeypatch):
    monkeypatch.setattr(doctor, "PYTHONS", ((3, 1), (3, 2)))
    report = doctor.Report()
    doctor.versions(report)
    ((what, _),) = report.problems
    assert "outside 3.1 to 3.2" in what


@pytest.mark.slow
def test_doctor_says_of_a_fork_what_the_layer_does_with_it(run, tmp_path):
    """Options by factories, a command without a function, and one that reads no checkpoints."""
    release = Path(importlib.util.find_spec("fairseq").origin).parents[1]
    skip = shutil.ignore_patterns("__pycache__", "examples")
    for package in ("fairseq", "fairseq_cli"):
        shutil.copytree(release / package, tmp_path / package, ignore=skip)
    edits = {
        "fairseq/dataclass/configs.py": (
            " = CommonConfig()",
            " = field(default_factory=CommonConfig)",
        ),
        "fairseq_cli/score.py": ("def cli_main", "def main_of_the_fork"),
        "fairseq/checkpoint_utils.py": ("def torch_persistent_save", "def save_of_the_fork"),
        "fairseq/tokenizer.py": ("import re", "import re  # as before"),
    }
    for name, (old, new) in edits.items():
        text = (tmp_path / name).read_text(encoding="utf-8")
        assert old in text
        (tmp_path / name).write_text(text.replace(old, new), encoding="utf-8")
    (tmp_path / "fairseq" / "of_the_fork.py").write_text("", encoding="utf-8")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    output = cli(run, "doctor", env={"PYTHONPATH": path})
    assert "it is               a fork or an edited copy" in output
    assert f"{tmp_path}, which comes before the installed one" in output
    (changed,) = [line for line in output.splitlines() if line.startswith("  changed")]
    assert "4 of 415 files" in changed and "3 of them patched" in changed
    assert changed.index("fairseq_cli/score.py") < changed.index("fairseq/tokenizer.py")
    assert "  added               1 files" in output
    left_out = [line for line in output.splitlines() if line.startswith("  left out")]
    assert any("score" in line for line in left_out)
    assert any("checkpoint_utils" in line for line in left_out)
    assert f"{len(left_out)} left out" in output
    assert output.rstrip().endswith("problems: none")


def test_sources_that_were_not_compiled_are_a_problem(monkeypatch, tmp_path):
    """A clone of fairseq in the current folder, or one that was built for another Python."""
    data = tmp_path / "fairseq" / "data"
    data.mkdir(parents=True)
    place = doctor.fairseq_origin.Origin(tmp_path, "fairseq", "0.12.2", "editable")
    monkeypatch.setattr(doctor.fairseq_origin, "find_origin", lambda: place)
    names = ["data_utils_fast", "token_block_utils_fast"]
    (data / f"{names[0]}.cpython-38-x86_64-linux-gnu.so").touch()
    report = doctor.Report()
    doctor.origin(report)
    ((what, remedy),) = report.problems
    assert all(name in what for name in names) and str(tmp_path) in what
    assert "build_ext --inplace" in remedy
    for name in names:
        (data / f"{name}{machinery.EXTENSION_SUFFIXES[0]}").touch()
    report = doctor.Report()
    doctor.origin(report)
    assert not report.problems


@pytest.mark.parametrize("is_release", [False, True])
def test_patches_that_make_files_safe_are_problems_in_forks_too(is_release, monkeypatch):
    rows = [[name, "why", False, "failed on x: AttributeError"] for name in NAMES_OF_PATCHES]
    monkeypatch.setattr(doctor, "probe", lambda *words: (json.dumps(rows), None))
    files = doctor.fairseq_origin.Difference([] if is_release else ["a.py"], [], [])
    monkeypatch.setattr(doctor.fairseq_origin, "difference", lambda folder: files)
    report = doctor.Report()
    doctor.patches(report)
    told = " ".join(what for what, _ in report.problems)
    expected = NAMES_OF_PATCHES if is_release else OF_SAFETY
    assert [name for name in NAMES_OF_PATCHES if name in told] == expected


def test_an_error_in_another_encoding_is_told(monkeypatch):
    monkeypatch.setenv("PYTHONIOENCODING", "latin-1")
    answer, error = doctor.probe("raise OSError('no folder stra\\xdfe')")
    assert answer is None and error == "OSError: no folder stra\ufffde"


def damaged(folder, name, **files):
    """A distribution in a folder with these files of metadata."""
    place = folder / f"{name.replace('-', '_')}-1.0.dist-info"
    place.mkdir()
    for file, content in files.items():
        (place / file.replace("_json", ".json")).write_bytes(content)


def test_metadata_that_cannot_be_read_are_problems(monkeypatch, tmp_path):
    damaged(tmp_path, "numpy", METADATA=b"Name: numpy\nVersion: 1.0\nSummary: \xff\xfe\n")
    damaged(tmp_path, "fairseq-ext", METADATA=b"Name: fairseq-ext\nRequires-Dist: numpy>=1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    report = doctor.Report()
    for check in (doctor.versions, doctor.requirements, doctor.optional):
        check(report)
    assert report.problems == [
        (
            f"the metadata of {name} cannot be read",
            f"pip install --no-deps --force-reinstall {name}",
        )
        for name in ("numpy", "fairseq-ext")
    ]


def test_damaged_metadata_of_others_and_of_fairseq_end_no_report(monkeypatch, tmp_path):
    damaged(tmp_path, "aaa", METADATA=b"Name: \xff\n")
    fairseq = {"METADATA": b"Name: fairseq\nVersion: 0.12.2\n", "direct_url_json": b"{"}
    damaged(tmp_path, "fairseq", **fairseq)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert doctor.fairseq_origin.find_origin().name == "fairseq"


def test_a_folder_that_an_uninstallation_left_is_no_fairseq(monkeypatch, tmp_path):
    (tmp_path / "fairseq").mkdir()
    monkeypatch.setattr(doctor.sys, "path", [str(tmp_path)])
    damaged(tmp_path, "fairseq", METADATA=b"Name: fairseq\nVersion: 0.12.2\n")
    monkeypatch.setattr(doctor.importlib.util, "find_spec", PathFinder.find_spec)
    report = doctor.Report()
    doctor.versions(report)
    remedy = "pip install --no-deps --force-reinstall fairseq==0.12.2"
    assert ("fairseq is missing", remedy) in report.problems


def test_an_error_of_a_check_is_a_problem():
    def fails(report):
        raise RuntimeError("on purpose")

    report = doctor.Report()
    doctor.run_check(fails, report)
    assert report.problems[0][0] == "fails is not complete: RuntimeError: on purpose"


def test_a_torch_that_ends_the_process_ends_no_report(monkeypatch):
    monkeypatch.setattr(doctor, "TORCH_PROBE", "import os; os.abort()")
    report = doctor.Report()
    doctor.devices(report)
    assert report.problems == [
        ("import torch: status -6", "pip install --force-reinstall torch"),
    ]


@pytest.mark.parametrize(
    "module, remedy",
    [
        ("torch", 'pip install "torch"'),
        ("hydra.core", 'pip install "hydra-core"'),
        ("fairseq_cli", "pip install --no-deps --force-reinstall fairseq==0.12.2"),
    ],
)
def test_the_remedy_for_a_missing_module_installs_it(module, remedy, monkeypatch):
    """It was to install this package, which is there."""
    error = f"ModuleNotFoundError: No module named '{module}'"
    monkeypatch.setattr(doctor, "probe", lambda *words: (None, error))
    report = doctor.Report()
    for check in (doctor.hook, doctor.patches, doctor.devices):
        check(report)
    assert [told for _, told in report.problems] == [remedy] * 3


def test_only_an_inactive_hook_is_mended_by_this_package(monkeypatch):
    answers = {doctor.HOOK_PROBE: ("True", None), doctor.STOCK_PROBE: (None, "OSError: broken")}
    monkeypatch.setattr(doctor, "probe", answers.get)
    report = doctor.Report()
    doctor.hook(report)
    assert any(line.split()[:3] == ["start-up", "hook", "active"] for line in report.lines)
    ((what, remedy),) = report.problems
    assert what == "fairseq-train by itself: OSError: broken" and remedy != doctor.ACTIVATE
    answers[doctor.HOOK_PROBE] = ("False", None)
    doctor.hook(report)
    assert report.problems[1][1] == doctor.ACTIVATE


def test_children_read_the_modules_of_this_process(monkeypatch, tmp_path):
    """Not those of the current folder, which no command of fairseq reads."""
    (tmp_path / "fairseq_cli.py").write_text("raise ImportError('of the current folder')")
    monkeypatch.chdir(tmp_path)
    assert doctor.probe("import fairseq_cli; print(1)") == ("1", None)
