"""What Python 3.10 added and what would only fail there where the line runs, on Python 3.9."""

import ast
from typing import Iterator

import pytest
from style import measure

FOLDERS = ("fairseq_ext", "examples", "benchmarks", "docs/site", "tests")
SAMPLE = """
pairs = zip([1], [2], strict=True)
Number = int | None
def mean(values: list | None) -> float | None: ...
flags = 1 | 2
"""


def newer_than_3_9(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the kind of each use; annotations count unless they are postponed."""
    tree = ast.parse(text)
    imports = [node.module for node in tree.body if isinstance(node, ast.ImportFrom)]
    postponed: set[ast.AST] = set()
    if "__future__" in imports:
        for node in ast.walk(tree):
            for annotation in (getattr(node, "annotation", None), getattr(node, "returns", None)):
                postponed.update(ast.walk(annotation) if annotation else ())
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "zip":
            if any(keyword.arg == "strict" for keyword in node.keywords):
                yield node.lineno, "zip(strict)"
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            has_none = any(
                isinstance(side, ast.Constant) and side.value is None
                for side in (node.left, node.right)
            )
            if has_none and node not in postponed:
                yield node.lineno, "X | None"


def test_uses_are_found():
    uses = [(2, "zip(strict)"), (3, "X | None"), (4, "X | None"), (4, "X | None")]
    assert sorted(newer_than_3_9(SAMPLE)) == uses
    assert sorted(newer_than_3_9("from __future__ import annotations\n" + SAMPLE)) == [
        (line + 1, kind) for line, kind in uses[:2]
    ]


@pytest.mark.parametrize("folder", FOLDERS)
def test_nothing_is_newer_than_python_3_9(folder):
    # its tests of `X | None` are skipped on Python 3.9
    allowed = measure.REPOSITORY / "tests/compat/versions/test_option_types.py"
    uses = {}
    for path in sorted((measure.REPOSITORY / folder).rglob("*.py")):
        lines = sorted(newer_than_3_9(path.read_text(encoding="utf-8")))
        if lines and path != allowed:
            uses[path.relative_to(measure.REPOSITORY).as_posix()] = lines
    assert uses == {}
