"""`fairseq-ext doctor`: problems are found, and the remedy is told."""

import os

from tools.commandline import cli

import fairseq_ext
from fairseq_ext.tools.installation import doctor


def test_doctor_finds_a_healthy_installation(run):
    output = cli(run, "doctor")
    assert output.rstrip().endswith("problems: none")
    assert fairseq_ext.__version__ in output
    for word in ("hydra-core", "omegaconf", "OMP_NUM_THREADS", "bf16 on cpu", "sentencepiece"):
        assert word in output
    assert "  active  " in output


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


def test_doctor_refuses_another_python_and_fairseq(monkeypatch):
    monkeypatch.setattr(doctor, "PYTHONS", ((3, 1), (3, 2)))
    monkeypatch.setattr(doctor, "installed_version", lambda name: "0.12.3")
    report = doctor.Report()
    doctor.versions(report)
    found = " ".join(what for what, _ in report.problems)
    assert "outside 3.1 to 3.2" in found and "fairseq 0.12.3" in found
