"""docs/adding-a-system.md: its files, put into a copy of the repository, are a working system."""

import os
import re
import shutil
import subprocess

import pages
import pytest

REPOSITORY = pages.REPOSITORY
PAGE = REPOSITORY / "docs" / "adding-a-system.md"
FOLDERS = ("docs", "examples", "fairseq_ext", "tests")
FILES = ("Makefile", "README.md", "pyproject.toml", "setup.py")
MOST_PLACES = 8


def apply(change, root):
    """Make the change of a ``diff`` block: its old lines stand once in the file of its head."""
    head, *lines = change.splitlines()
    path = root / head[len("+++ ") :]
    old = "".join(line[1:] + "\n" for line in lines if line[0] in " -")
    new = "".join(line[1:] + "\n" for line in lines if line[0] in " +")
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1, f"{path.name} holds {text.count(old)} times:\n{old}"
    path.write_text(text.replace(old, new), encoding="utf-8")


@pytest.fixture(scope="module")
def clone(tmp_path_factory, toy_corpus):
    """A copy of the repository with the page's system in it, and the toy corpus as DATA."""
    root = tmp_path_factory.mktemp("clone")
    unwanted = shutil.ignore_patterns("__pycache__", "*.pyc")
    for folder in FOLDERS:
        shutil.copytree(REPOSITORY / folder, root / folder, ignore=unwanted)
    for name in FILES:
        shutil.copy(REPOSITORY / name, root / name)
    for block in pages.blocks(PAGE):
        if block.kind == "file":
            path = root / block.name
            assert not path.exists(), f"{block.name} exists already"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, encoding="utf-8")
        elif block.language == "diff":
            apply(block.text, root)
    (root / "DATA").symlink_to(toy_corpus.two)
    return root


def environment(clone):
    return {"PYTHONPATH": os.pathsep.join([str(clone), str(clone / "tests")])}


@pytest.mark.slow
def test_commands_of_the_page_run(clone, run):
    """Its tests pass, it is trained, it translates, and it is listed."""
    (script,) = [block.text for block in pages.blocks(PAGE) if block.language == "bash"]
    output = run("bash", "-euo", "pipefail", "-c", script, cwd=clone, env=environment(clone))
    assert " passed" in output and " failed" not in output
    assert (clone / "confident" / "checkpoint_last.pt").is_file()
    assert len(re.findall(r"(?m)^H-\d+\t", output)) == 24  # the test set of the toy corpus
    assert "architecture confident_gru" in output and "--embed-dim" in output


@pytest.mark.slow
def test_the_guards_of_the_repository_accept_it(clone, run):
    """Layers, sizes, help texts, typed signatures, the card and the manual."""
    selected = "confident or manual_are or every_name_is_unique or everything_registered"
    files = ("tests/test_registry.py", "tests/style/test_style.py", "tests/test_docs.py")
    words = ("-q", "-p", "no:cacheprovider", *files, "-k", selected)
    output = run("python", "-m", "pytest", *words, cwd=clone, env=environment(clone))
    assert re.search(r"\b[1-9]\d passed", output), output


@pytest.mark.slow
def test_a_wrong_option_ends_in_one_line(clone, run):
    (script,) = [block.text for block in pages.blocks(PAGE) if block.language == "bash"]
    train = re.search(r"(?ms)^fairseq-train .*?[^\\]$", script).group()
    train = train.replace("--entropy-weight 0.1", "--entropy-weight -1")
    output = run("bash", "-c", train, cwd=clone, env=environment(clone), fails=True)
    last = output.splitlines()[-1]
    assert "error: --entropy-weight -1.0 is not allowed; allowed: at least 0" in last
    assert "Traceback" not in output


def test_the_files_of_the_page_are_formatted(clone):
    for words in (("check",), ("format", "--check")):
        command = [shutil.which("ruff") or "ruff", *words, "."]
        try:
            checked = subprocess.run(command, cwd=clone, stdout=subprocess.PIPE, encoding="utf-8")
        except FileNotFoundError:
            pytest.skip("ruff is not installed")
        assert checked.returncode == 0, checked.stdout


def test_few_places_outside_of_its_files_are_touched(clone):
    text = PAGE.read_text(encoding="utf-8")
    _, _, section = text.partition("\n## The other places\n")
    table, _, _ = section.partition("```diff")
    places = re.findall(r"(?m)^\| `([\w./-]+)` \|", table)
    assert 0 < len(places) <= MOST_PLACES
    assert all((clone / place).is_file() for place in places if place != "CHANGELOG.md")
    changed = re.findall(r"(?m)^\+\+\+ (\S+)$", text)
    assert set(changed) <= set(places)
