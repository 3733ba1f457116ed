"""Mutations of neural code that Cosmic Ray lacks, as operators of Cosmic Ray (on parso trees).

Its own operators change arithmetic, comparisons, numbers and conditions. Mistakes in models are
rather of the kind "no dropout", "no tanh", "not detached", "not initialised", "option not passed".
"""

from cosmic_ray.operators.operator import Example, Operator
from parso.python.tree import Name

# f(x, ...) -> x
FUNCTIONS = frozenset(
    "dropout kept tanh sigmoid relu softmax log_softmax exp log sqrt sorted reversed abs".split()
)
LIBRARIES = ("torch", "F", "functional", "math", "np", "utils")
# x.f(...) -> x
METHODS = frozenset(
    "detach masked_fill masked_fill_ float double log exp clamp clamp_ flip index_select relu "
    "sigmoid tanh softmax mul_ div_ add_ sub_".split()
)
# statements that only report or that nothing can do without
UNTOUCHED = ("super().__init__(", "log", "metrics.", "warnings.", "check_", "print(")


def _replaced(node, code: str) -> Name:
    prefix = node.get_first_leaf().prefix
    return Name(code, node.start_pos, prefix=prefix)


def _call_at(node, number: int):
    """(name, positional arguments' code) of the call whose parentheses are child ``number``."""
    trailer, callee = node.children[number], node.children[number - 1]
    if trailer.type != "trailer" or trailer.children[0].value != "(":
        return None, []
    name = callee.children[-1] if callee.type == "trailer" else callee
    inner = trailer.children[1:-1]
    arguments = inner[0].children[::2] if inner and inner[0].type == "arglist" else inner
    positional = [part for part in arguments if part.type != "argument"]
    return getattr(name, "value", None), [part.get_code().strip() for part in positional]


class Unwrap(Operator):
    """Replace a call by what goes through it: ``dropout(x, rate)`` -> ``x``."""

    @staticmethod
    def _found(node):
        if node.type != "atom_expr":
            return
        for number in range(1, len(node.children)):
            name, arguments = _call_at(node, number)
            of_value = number > 1 and node.children[0].get_code().strip() not in LIBRARIES
            if name in METHODS and of_value:
                rest = [*node.children[: number - 1], *node.children[number + 1 :]]
                yield "".join(part.get_code() for part in rest).strip()
            elif name in FUNCTIONS and arguments and not of_value:
                rest = "".join(part.get_code() for part in node.children[number + 1 :])
                yield f"({arguments[0]}){rest}"

    def mutation_positions(self, node):
        for _ in self._found(node):
            yield node.start_pos, node.end_pos

    def mutate(self, node, index):
        return _replaced(node, list(self._found(node))[index])

    @classmethod
    def examples(cls):
        return (
            Example("a = dropout(x, 0.5)", "a = (x)"),
            Example("a = torch.tanh(x)[0] + 1", "a = (x)[0] + 1"),
            Example("a = x.detach().sum()", "a = x.sum()"),
        )


class DeleteStatement(Operator):
    """Replace a call that stands alone, or an augmented assignment, by ``pass``."""

    def mutation_positions(self, node):
        if node.type != "simple_stmt":
            return
        statement = node.children[0]
        code = statement.get_code().strip()
        alone = statement.type == "atom_expr" and code.endswith(")")
        added = statement.type == "expr_stmt" and getattr(statement.children[1], "type", "") in (
            "operator",
            "augassign",
        )
        augmented = added and statement.children[1].get_code().strip() not in ("=", ":")
        if (alone or augmented) and not code.startswith(UNTOUCHED):
            yield statement.start_pos, statement.end_pos

    def mutate(self, node, index):
        node.children[0] = _replaced(node.children[0], "pass")
        return node

    @classmethod
    def examples(cls):
        return (
            Example("nn.init.zeros_(x)\n", "pass\n"),
            Example("a += 1\n", "pass\n"),
        )


class DropKeyword(Operator):
    """Leave out an argument given by name: ``f(x, dim=1)`` -> ``f(x)``."""

    @staticmethod
    def _found(node):
        if node.type == "trailer" and node.children[0].value == "(":
            inner = node.children[1]
            arguments = [inner] if inner.type == "argument" else getattr(inner, "children", [])
            if inner.type in ("argument", "arglist"):
                for number, part in enumerate(arguments):
                    if part.type == "argument" and part.children[0].type == "name":
                        if part.children[1].type == "operator" and part.children[1].value == "=":
                            yield [other for at, other in enumerate(arguments) if at != number]

    def mutation_positions(self, node):
        for _ in self._found(node):
            yield node.start_pos, node.end_pos

    def mutate(self, node, index):
        left = list(self._found(node))[index]
        code = [part.get_code().strip() for part in left if part.get_code().strip() != ","]
        return _replaced(node, f"({', '.join(code)})")

    @classmethod
    def examples(cls):
        return (
            Example("f(x, dim=1)", "f(x)"),
            Example("f(x, dim=1, key=2)", "f(x, dim=1)", occurrence=1),
        )


class SwapArguments(Operator):
    """Exchange the first two positional arguments: ``f(x, y)`` -> ``f(y, x)``."""

    @staticmethod
    def _code(node):
        inner = node.children[1] if node.type == "trailer" else None
        if inner is None or node.children[0].value != "(" or inner.type != "arglist":
            return None
        first, second, *rest = inner.children[::2]
        if any(part.type == "argument" for part in (first, second)):
            return None
        parts = [part.get_code().strip() for part in (second, first, *rest)]
        return None if parts[0] == parts[1] else f"({', '.join(parts)})"

    def mutation_positions(self, node):
        if self._code(node):
            yield node.start_pos, node.end_pos

    def mutate(self, node, index):
        return _replaced(node, self._code(node))

    @classmethod
    def examples(cls):
        return (Example("f(x, y, 3)", "f(y, x, 3)"),)


OWN = {kind.__name__: kind for kind in (Unwrap, DeleteStatement, DropKeyword, SwapArguments)}
