"""Print how the sources of the project read, in numbers: types, names, comments, docstrings.

    python tests/style/measure.py [FOLDER ...]

The columns of a folder, without its sub-folders' own rows:

- typed: functions with arguments whose arguments are all annotated, ``self`` and ``cls`` apart;
- vague: functions with an argument or a local variable of a name that says nothing;
- comments, docstrings: their lines per line of code.
"""

import argparse
import ast
import io
import tokenize
from dataclasses import dataclass
from pathlib import Path
from typing import Iterator, List, Set, Tuple, Union

REPOSITORY = Path(__file__).resolve().parents[2]
PACKAGE = REPOSITORY / "fairseq_ext"
VAGUE_NAMES = frozenset("one found each own it given wanted known made held kept thing".split())
Function = Union[ast.FunctionDef, ast.AsyncFunctionDef]
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
DOCUMENTED = (ast.Module, ast.ClassDef, *FUNCTIONS)
NO_CODE = (tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)


@dataclass
class Measures:
    """Counts over files; they are added up over a folder."""

    functions: int = 0
    with_arguments: int = 0
    typed: int = 0
    vague: int = 0
    code_lines: int = 0
    comment_lines: int = 0
    docstring_lines: int = 0

    def __add__(self, other: "Measures") -> "Measures":
        return Measures(*(a + b for a, b in zip(vars(self).values(), vars(other).values())))

    def row(self, label: str) -> str:
        """One line of the table: shares in percent, lines per line of code."""
        typed = 100 * self.typed / max(1, self.with_arguments)
        vague = 100 * self.vague / max(1, self.functions)
        comments = self.comment_lines / max(1, self.code_lines)
        docstrings = self.docstring_lines / max(1, self.code_lines)
        return (
            f"{label:<28}{self.code_lines:>8}{self.functions:>11}{typed:>8.1f}{vague:>8.1f}"
            f"{comments:>10.2f}{docstrings:>12.2f}"
        )


HEADER = (
    f"{'folder':<28}{'code':>8}{'functions':>11}{'typed %':>8}{'vague %':>8}"
    f"{'comments':>10}{'docstrings':>12}"
)


def arguments(function: Function) -> List[ast.arg]:
    """Return the arguments of a function, without a method's ``self`` or ``cls``."""
    parts = function.args
    positional = [*parts.posonlyargs, *parts.args]
    if positional and positional[0].arg in ("self", "cls"):
        positional = positional[1:]
    starred = [argument for argument in (parts.vararg, parts.kwarg) if argument]
    return [*positional, *parts.kwonlyargs, *starred]


def local_names(function: Function) -> Set[str]:
    """Return the arguments and all names bound in a function, nested functions apart."""
    names = {argument.arg for argument in arguments(function)}
    nodes = list(ast.iter_child_nodes(function))
    while nodes:
        node = nodes.pop()
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        nodes.extend(ast.iter_child_nodes(node))
    return names


def functions(tree: ast.AST) -> Iterator[Function]:
    """Yield all functions and methods of a module, nested ones too."""
    return (node for node in ast.walk(tree) if isinstance(node, FUNCTIONS))


def untyped_functions(path: Path) -> List[Tuple[int, str]]:
    """Return (line, name) of every function with an argument that has no annotation."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [
        (function.lineno, function.name)
        for function in functions(tree)
        if any(argument.annotation is None for argument in arguments(function))
    ]


def vague_names(path: Path) -> List[Tuple[int, str, List[str]]]:
    """Return (line, function, names) of every function with a variable of a vague name."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [
        (function.lineno, function.name, sorted(local_names(function) & VAGUE_NAMES))
        for function in functions(tree)
        if local_names(function) & VAGUE_NAMES
    ]


def docstring_lines(tree: ast.AST) -> Set[int]:
    """Return the numbers of the lines that docstrings stand on."""
    lines: Set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            first = node.body[0]
            lines.update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    return lines


def measure(path: Path) -> Measures:
    """Return the counts of one file."""
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    documented = docstring_lines(tree)
    code: Set[int] = set()
    comments: Set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            comments.add(token.start[0])
        elif token.type not in NO_CODE:
            code.update(range(token.start[0], token.end[0] + 1))
    listed = list(functions(tree))
    with_arguments = [function for function in listed if arguments(function)]
    return Measures(
        functions=len(listed),
        with_arguments=len(with_arguments),
        typed=len(with_arguments) - len(untyped_functions(path)),
        vague=len(vague_names(path)),
        code_lines=len(code - documented),
        comment_lines=len(comments),
        docstring_lines=len(documented),
    )


def expected_test_files(module: Path) -> Set[str]:
    """Return the names that a module's test file may bear.

    ``test_NAME.py``, ``test_FOLDER_NAME.py`` where several folders have a NAME, and
    ``test_FOLDER.py`` for the module of a folder that is its command.
    """
    folder = module.parent.name
    names = {f"test_{module.stem}.py", f"test_{folder}_{module.stem}.py"}
    return names | ({f"test_{folder}.py"} if module.stem == "command" else set())


def modules_without_test(package: Path = PACKAGE, tests: Path = REPOSITORY / "tests") -> List[str]:
    """Return the modules that have no test file of their name, in any folder."""
    present = {path.name for path in tests.rglob("test_*.py")}
    modules = [path for path in sorted(package.rglob("*.py")) if not path.stem.startswith("__")]
    return [
        str(path.relative_to(package))
        for path in modules
        if not expected_test_files(path) & present
    ]


def files_that_name(system: str, package: Path = PACKAGE) -> List[str]:
    """Return the modules outside of a system's folder that contain its name."""
    return [
        str(path.relative_to(package))
        for path in sorted(package.rglob("*.py"))
        if path.relative_to(package).parts[0] != system
        and system in path.read_text(encoding="utf-8").lower()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folders", nargs="*", type=Path, help="default: every part of the package")
    folders = parser.parse_args().folders
    if not folders:
        folders = [path for path in sorted(PACKAGE.iterdir()) if (path / "__init__.py").is_file()]
        folders = [*folders, PACKAGE, REPOSITORY / "benchmarks", REPOSITORY / "examples"]
    print(HEADER)
    for folder in folders:
        total = sum((measure(path) for path in sorted(folder.rglob("*.py"))), Measures())
        print(total.row(folder.resolve().relative_to(REPOSITORY).as_posix()))
    without = modules_without_test()
    modules = sum(not path.stem.startswith("__") for path in PACKAGE.rglob("*.py"))
    print(f"modules with a test file of their name: {modules - len(without)} of {modules}")
    for system in ("dual", "duo", "multiway", "routed", "twin"):
        print(f"modules elsewhere that name {system}: {len(files_that_name(system))}")


if __name__ == "__main__":
    main()
