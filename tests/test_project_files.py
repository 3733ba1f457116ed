"""CITATION.cff and the CI's configuration say what setup.py, the Makefile and the pages say."""

import re
import subprocess
from pathlib import Path

import pytest
import yaml

import fairseq_ext
from fairseq_ext.tools.installation import doctor

REPOSITORY = Path(__file__).resolve().parents[1]


def text_of(name):
    return (REPOSITORY / name).read_text(encoding="utf-8")


def minor(version):
    """10 for 3.10."""
    return int(version.split(".")[1])


@pytest.fixture(scope="module")
def job():
    return yaml.safe_load(text_of(".github/workflows/ci.yml"))["jobs"]["test"]


@pytest.fixture(scope="module")
def pythons():
    """The Pythons that the Makefile accepts."""
    first, end = re.search(r"\(3, (\d+)\) <= v < \(3, (\d+)\)", text_of("Makefile")).groups()
    return [f"3.{number}" for number in range(int(first), int(end))]


def test_the_matrix_is_every_supported_python(job, pythons):
    assert [row["python"] for row in job["strategy"]["matrix"]["include"]] == pythons


def test_setup_and_pages_name_the_same_pythons(pythons):
    assert f'python_requires=">={pythons[0]}"' in text_of("setup.py")
    claim = f"Python {pythons[0]} to {pythons[-1]}"
    for page in ("README.md", "CONTRIBUTING.md", "docs/install.md", "docs/compat.md"):
        assert claim in text_of(page), page
    assert f"| Python | {pythons[0]} to {pythons[-1]} |" in text_of("docs/fairseq-today.md")


def test_the_classifiers_name_the_same_pythons(pythons):
    first, end = re.search(r"MINORS = range\((\d+), (\d+)\)", text_of("setup.py")).groups()
    assert [f"3.{number}" for number in range(int(first), int(end))] == pythons


def test_doctor_accepts_the_same_pythons(pythons):
    text = ["{}.{}".format(*version) for version in doctor.PYTHONS]
    assert text == [pythons[0], pythons[-1]]


def test_the_pinned_torch_is_tested_where_the_pins_hold(job):
    pin = r"(?m)^torch==([\d.]+); python_version >= \"(.+)\""
    torch, since = re.search(pin, text_of("constraints.txt")).groups()
    rows = job["strategy"]["matrix"]["include"]
    assert {row["torch"] for row in rows if minor(row["python"]) >= minor(since)} == {torch}


@pytest.mark.parametrize(("torch", "pinned"), [("torch==2.6.0", False), ("", True)])
def test_another_torch_chooses_its_sympy(torch, pinned):
    """torch 2.5 and 2.6 ask for exactly sympy 1.13.1, which pip could not bring past the pins."""
    words = ["VENV=/no/such/environment", *([f"TORCH={torch}"] if torch else [])]
    planned = subprocess.run(
        ["make", "-n", "setup", *words],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    ).stdout
    pattern = re.search(r"grep -vE '(.+)' constraints.txt", planned).group(1)
    left = [line for line in text_of("constraints.txt").splitlines() if not re.match(pattern, line)]
    names = {line.split("==")[0] for line in left}
    assert "torch" not in names and "numpy" in names and ("sympy" in names) == pinned


def test_lint_and_test_run_on_the_matrix(job):
    steps = {step.get("run", ""): step for step in job["steps"]}
    assert "if" not in steps["make test"]
    # the one Python without mypy
    without = re.search(r"mypy; python_version >= '(3\.\d+)'", text_of("setup.py")).group(1)
    assert steps["make lint"]["if"] == f"matrix.python != '3.{minor(without) - 1}'"
    targets = set(re.findall(r"(?m)^([a-z-]+):", text_of("Makefile")))
    named = {target for run in steps for target in re.findall(r"make ([a-z-]+)", run)}
    assert named <= targets


def test_the_citation_is_valid():
    citation = yaml.safe_load(text_of("CITATION.cff"))
    assert citation["cff-version"] == "1.2.0"
    assert {"message", "title", "authors"} <= set(citation)
    assert citation["version"] == fairseq_ext.__version__
    assert citation["license"] in text_of("setup.py")
    for entry in [citation, *citation["references"]]:
        assert entry["title"] and entry["authors"]
        for author in entry["authors"]:
            assert set(author) in ({"name"}, {"family-names", "given-names"})


def test_every_card_s_paper_is_cited():
    references = yaml.safe_load(text_of("CITATION.cff"))["references"]
    titles = [entry["title"].lower() for entry in references]
    for card in sorted((REPOSITORY / "fairseq_ext").glob("*/README.md")):
        text = re.sub(r"\s+", " ", card.read_text(encoding="utf-8")).lower()
        assert any(title in text for title in titles), card
