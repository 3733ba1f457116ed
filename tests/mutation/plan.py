"""Which mutants there are in a file, which of them cannot matter, and a sample of the rest."""

import ast
import difflib
import random
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Dict, Iterator, List

import cosmic_ray.plugins
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from operators import OWN

# one replacement of each operator, the likeliest mistake; Cosmic Ray has all of them
BINARY = (
    "Add_Sub Sub_Add Mul_Div Div_Mul FloorDiv_Mul Mod_FloorDiv Pow_Mul BitOr_BitAnd BitAnd_BitOr"
)
COMPARISON = "Eq_NotEq NotEq_Eq Lt_LtE LtE_Lt Gt_GtE GtE_Gt Is_IsNot IsNot_Is"
UNARY = "USub_UAdd Delete_Not Delete_Invert"
REST = (
    "AddNot ReplaceTrueWithFalse ReplaceFalseWithTrue ReplaceAndWithOr ReplaceOrWithAnd "
    "ReplaceBreakWithContinue ReplaceContinueWithBreak NumberReplacer RemoveDecorator "
    "ZeroIterationForLoop"
)
OPERATORS = [
    *(f"ReplaceBinaryOperator_{pair}" for pair in BINARY.split()),
    *(f"ReplaceComparisonOperator_{pair}" for pair in COMPARISON.split()),
    *(
        name if name.startswith("Replace") else f"ReplaceUnaryOperator_{name}"
        for name in UNARY.split()
    ),
    *REST.split(),
]
# arguments that change what is printed
PRINTED = frozenset(("priority", "round", "stacklevel", "help", "metadata"))
# without these nothing can be imported, or nothing changes
DECORATORS = (
    "dataclass property classmethod staticmethod register once_differentiable "
    "functools contextlib abstractmethod torch.jit".split()
)
REPORTS = ("logger.", "warnings.", "metrics.log", "print(", "log.")
NAMES = ("__repr__", "extra_repr", "add_args", "__str__")


@dataclass(frozen=True)
class Mutant:
    """One change of one file. before, after: the changed lines with two lines around them."""

    path: str
    line: int
    operator: str
    before: str
    after: str

    def applied_to(self, source: str) -> str:
        """The mutated file; ValueError where the lines are not those it was made from."""
        if source.count(self.before) != 1:
            raise ValueError(f"{self.path}: the lines around {self.line} have changed")
        return source.replace(self.before, self.after)

    def changed(self) -> List[str]:
        """The lines that differ, those of the file with "-", those of the mutant with "+"."""
        lines = difflib.ndiff(self.before.splitlines(), self.after.splitlines())
        return [line for line in lines if line[:1] in "-+"]


def operators() -> Dict[str, object]:
    """{name: operator}, those of Cosmic Ray and those of operators.py."""
    theirs = {name: cosmic_ray.plugins.get_operator(f"core/{name}")() for name in OPERATORS}
    return {**theirs, **{name: kind() for name, kind in OWN.items()}}


def _parents(node) -> Iterator:
    while node is not None:
        yield node
        node = node.parent


def cannot_matter(node, name: str) -> bool:
    """True for annotations, docstrings, texts of errors, reports and what they are made of."""
    if name == "RemoveDecorator":
        return node.get_code().strip().lstrip("@").startswith(tuple(DECORATORS))
    child = None
    for parent in _parents(node):
        if parent.type in ("annassign", "fstring", "import_from", "import_name", "raise_stmt"):
            # the value of an annotated assignment is code
            if parent.type != "annassign" or child is None or child is parent.children[1]:
                return True
        if parent.type == "funcdef":
            if parent.name.value in NAMES or child is parent.annotation:
                return True
        if parent.type in ("param", "tfpdef") and child is not None:
            if child is getattr(parent, "annotation", None) or child.type == "tfpdef":
                return True
        if parent.type == "argument" and getattr(parent.children[0], "value", "") in PRINTED:
            return True
        if parent.type == "simple_stmt" and parent.get_code().strip().startswith(REPORTS):
            return True
        child = parent
    return False


def candidates(path: str, source: str) -> List[Mutant]:
    """All mutants of a file that differ from it and can be compiled."""
    mutants, seen = [], {ast.dump(ast.parse(source))}
    tree = get_ast(source)
    for name, operator in operators().items():
        occurrence = -1
        for node in ast_nodes(tree):
            for _ in operator.mutation_positions(node):
                occurrence += 1
                if cannot_matter(node, name):
                    continue
                code = mutate_code(source, operator, occurrence)
                try:
                    dump = ast.dump(ast.parse(code))
                except SyntaxError:
                    continue
                if dump not in seen:
                    seen.add(dump)
                    mutants += _mutant(path, node, name, source, code)
    return mutants


def _mutant(path: str, node, operator: str, source: str, code: str) -> List[Mutant]:
    """A list of one; empty where the lines cannot be told from others of the file."""
    old, new = source.splitlines(keepends=True), code.splitlines(keepends=True)
    start = next(at for at, pair in enumerate(zip(old, new)) if pair[0] != pair[1])
    end = next(
        at for at, pair in enumerate(zip(reversed(old), reversed(new))) if pair[0] != pair[1]
    )
    for around in range(2, 12):
        first, last = max(start - around, 0), max(end - around, 0)
        before = "".join(old[first : len(old) - last])
        if source.count(before) == 1:
            after = "".join(new[first : len(new) - last])
            return [Mutant(path, node.start_pos[0], operator, before, after)]
    return []


def sample(root: Path, path: str, count: int, seed: int) -> List[Mutant]:
    """``count`` mutants of a file (all if there are fewer), the same ones for the same seed."""
    everything = candidates(path, (root / path).read_text(encoding="utf-8"))
    generator = random.Random(f"{seed}:{path}")
    return generator.sample(everything, min(count, len(everything)))


def as_record(mutant: Mutant) -> Dict:
    return asdict(mutant)
