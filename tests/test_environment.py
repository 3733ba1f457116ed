"""The page of environment variables names every variable that the sources read."""

import ast
import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
PAGE = REPOSITORY / "docs" / "environment.md"
FOLDERS = ("fairseq_ext", "benchmarks", "examples", "tests")
OURS = re.compile(r"FAIRSEQ_EXT_[A-Z_]+")
READERS = ("os.environ.get", "os.environ.pop", "os.environ.setdefault", "os.getenv")
# set and read by one test alone, between its own processes
OF_ONE_TEST = {"PROBE", "RECORD", "USER_DIR"}


def python_files():
    files = [*REPOSITORY.glob("*.py"), *(REPOSITORY / "docs").rglob("*.py")]
    for folder in FOLDERS:
        files += (REPOSITORY / folder).rglob("*.py")
    return sorted(set(files) - {Path(__file__)})


def names_read(node):
    """The expressions of the names that one node of a syntax tree reads from the environment."""
    if isinstance(node, ast.Call) and ast.unparse(node.func) in READERS:
        return [node.args[0]]
    if isinstance(node, ast.Subscript) and ast.unparse(node.value) == "os.environ":
        return [node.slice]
    if isinstance(node, ast.Compare) and "os.environ" in map(ast.unparse, node.comparators):
        return [node.left]
    if isinstance(node, ast.Dict):
        # {**os.environ, "OMP_NUM_THREADS": "1"}: the environment of another process
        unpacked = [ast.unparse(v) for k, v in zip(node.keys, node.values) if k is None]
        return [key for key in node.keys if key is not None] if "os.environ" in unpacked else []
    return []


def variables_of(text):
    """The variables that a Python source reads or names; its own names for them are resolved."""
    tree = ast.parse(text)
    constants = {
        target.id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    parameters = {argument.arg for node in ast.walk(tree) if isinstance(node, ast.arguments)
                  for argument in node.args}  # fmt: skip
    variables = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            variables |= {node.value} if OURS.fullmatch(node.value) else set()
        for name in names_read(node):
            if isinstance(name, ast.Name) and name.id in parameters:
                continue  # a function that is given the name; its callers have it
            value = name.value if isinstance(name, ast.Constant) else constants.get(name.id)
            assert isinstance(value, str), f"line {name.lineno}: write the name as a constant"
            variables.add(value)
    return variables - OF_ONE_TEST


def on_the_page():
    return set(re.findall(r"`([A-Z][A-Z_]+)`", PAGE.read_text(encoding="utf-8")))


def test_variables_are_on_the_page():
    page, missing = on_the_page(), {}
    for path in python_files():
        text = path.read_text(encoding="utf-8")
        if re.search("environ|getenv|FAIRSEQ_EXT_", text) and not variables_of(text) <= page:
            missing[str(path.relative_to(REPOSITORY))] = variables_of(text) - page
    assert not missing


def test_variables_of_the_makefile_are_on_the_page():
    text = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    assert set(re.findall(r"^([A-Z]+) \?=", text, re.MULTILINE)) <= on_the_page()


def test_the_page_has_no_variable_of_the_past():
    paths = [*python_files(), REPOSITORY / "Makefile"]
    words = {word for path in paths for word in re.findall(r"[A-Z_]{4,}", path.read_text("utf-8"))}
    assert on_the_page() <= words | {"TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"}


@pytest.mark.parametrize(
    "line",
    [
        "os.environ.get('NEW', '')",
        "os.getenv('NEW')",
        "os.environ['NEW']",
        "'NEW' in os.environ",
        "os.environ.get(SWITCH)",
        "{**os.environ, 'NEW': '1'}",
        "other(name='NEW'); os.environ.get('NEW')",
    ],
)
def test_a_new_variable_would_be_noticed(line):
    assert variables_of(f"SWITCH = 'NEW'\n{line}\n") == {"NEW"}
    assert "NEW" not in on_the_page()
