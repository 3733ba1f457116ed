"""The cards of the systems as pages: their references lead to the code and to the tests.

A card names code as `modules.py: Block.forward` and tests as `test_modules.py: test_block`, in the
folders of its system. Here both become links, to the pages of the API and of the tests.
"""

import ast
import functools
import re
from pathlib import Path
from typing import Dict, List, NamedTuple, Optional
from xml.etree import ElementTree

from equations import ASIDE, NotAnEquation, mathml

CODE = re.compile(r"^([\w/]+\.py)(?:: ([\w.]+))?")
TEST = re.compile(r"^(?:([\w/]+\.py): )?(test_\w+)$")
EQUATION = re.compile(r"^((?:Eq\. [\d, -]+: )?)(.+?)((?: \((?:Eq|Sec)[^)]*\))?)$")


class Test(NamedTuple):
    """A test that a card names: its file, relative to the repository, and its source."""

    file: str
    name: str
    source: str

    @property
    def anchor(self) -> str:
        """The id of the test on the page of its system's tests."""
        return f"{Path(self.file).stem}.{self.name}"


def is_public(node: ast.AST) -> bool:
    """True for a class or function that the pages of the API show."""
    kinds = (ast.ClassDef, ast.FunctionDef)
    return isinstance(node, kinds) and node.name[0] != "_" and bool(ast.get_docstring(node))


@functools.lru_cache(maxsize=None)
def documented_names(path: Path) -> List[str]:
    """The public classes and functions of a module, and `Class.method`, that have docstrings."""
    names = []
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if is_public(node):
            names.append(node.name)
            if isinstance(node, ast.ClassDef):
                names += [f"{node.name}.{part.name}" for part in node.body if is_public(part)]
    return names


class Card:
    """A card, and what its references lead to."""

    def __init__(self, package: Path, system: str):
        self.package, self.system = package, system
        self.cited_file = ""
        self.tests = {}  # type: Dict[str, Test]
        self.test_files = self._test_files()

    def _test_files(self) -> Dict[Path, Dict[str, str]]:
        """{file: {test: source}}, the files of the system first."""
        root = self.package.parent
        files = sorted((root / "tests" / self.system).glob("test_*.py"))
        files += sorted(path for path in (root / "tests").rglob("test_*.py") if path not in files)
        return {path: functions(path) for path in files}

    def page(self) -> str:
        """Return the card in Markdown, with its links."""
        text = (self.package / self.system / "README.md").read_text(encoding="utf-8")
        lines = text.splitlines()
        return "\n".join(self._row(line) if line[:1] == "|" else line for line in lines) + "\n"

    def _row(self, line: str) -> str:
        """Return a row of a table with its equations and links."""
        line = equations_of_a_row(line)
        # a test without a file is one of the file that was named last
        self.cited_file = next(iter(re.findall(r"`[^`]*?(test_\w+\.py):", line)), self.cited_file)
        return re.sub(r"`([^`]+)`", lambda match: self._link(match.group(1)), line)

    def _link(self, reference: str) -> str:
        """Return the reference as a link, or as it is where it leads nowhere."""
        span = f"`{reference}`"
        target = self._test(reference) or self._code(reference)
        return f"[{span}]({target})" if target else span

    def _test(self, reference: str) -> Optional[str]:
        match = TEST.match(reference)
        if not match:
            return None
        self.cited_file = Path(match.group(1) or self.cited_file).name
        name = match.group(2)
        paths = [path for path, tests in self.test_files.items() if name in tests]
        if not paths:
            return None
        path = next((path for path in paths if path.name == self.cited_file), paths[0])
        relative = path.relative_to(self.package.parent).as_posix()
        test = Test(relative, name, self.test_files[path][name])
        self.tests[test.anchor] = test
        return f"tests.md#{test.anchor}"

    def _code(self, reference: str) -> Optional[str]:
        match = CODE.match(reference)
        if not match:
            return None
        file, name = match.groups()
        for folder in (self.package / self.system, self.package):
            path = folder / file
            if path.is_file():
                break
        if not path.is_file():
            return None
        parts = path.relative_to(self.package).with_suffix("").parts
        anchor = ".".join((self.package.name, *parts))
        documented = documented_names(path)
        while name and name not in documented:
            name = name.rpartition(".")[0]
        page = "api.md" if parts[0] == self.system else f"../{parts[0]}/api.md"
        return f"{page}#{anchor}.{name}" if name else f"{page}#{anchor}"

    def tests_page(self) -> str:
        """Return the tests that the card names, with their sources."""
        text = f"# {self.system}: the tests that the card names\n\n"
        text += "Whole files, with their fixtures, are in the folder `tests` of the repository.\n"
        for anchor, test in sorted(self.tests.items()):
            text += f"\n## {test.name} {{#{anchor}}}\n\n`{test.file}`\n\n"
            text += f"```python\n{test.source}\n```\n"
        return "---\nsearch:\n  exclude: true\n---\n\n" + text


@functools.lru_cache(maxsize=None)
def functions(path: Path) -> Dict[str, str]:
    """{name: source with decorators} of the tests of a file."""
    text = path.read_text(encoding="utf-8")
    lines, sources = text.splitlines(), {}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            first = min([node.lineno, *(part.lineno for part in node.decorator_list)])
            sources[node.name] = "\n".join(lines[first - 1 : node.end_lineno])
    return sources


def equations_of_a_row(line: str) -> str:
    """Return a row of a table with MathML in place of the cells that are equations."""
    cells = re.split(r"(?<!\\)\|", line)
    return "|".join(equation_cell(cell) for cell in cells)


def equation_cell(cell: str) -> str:
    """Return the cell with its equation as MathML; as it is where it holds anything else."""
    label, text, source = EQUATION.match(cell.strip()).groups() if cell.strip() else ("", "", "")
    if "=" not in text or "`" in text:
        return cell
    text, *aside = ASIDE.split(text, maxsplit=1)
    try:
        math = "; ".join(
            ElementTree.tostring(mathml(part.replace("\\|", "|")), encoding="unicode")
            for part in text.split("; ")
        )
    except NotAnEquation:
        return cell
    return f" {label}{', '.join([math.replace('|', '&#124;'), *aside])}{source} "
