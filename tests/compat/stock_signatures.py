"""Compares the arguments of each patched function of fairseq with those in fairseq's source.

The source is read with `ast`: once the patches are active, no stock function is left to ask. As a
program: imports all patched modules and prints one line for each difference, and at the end how
many functions were compared. What a module has for itself alone, such as its own `torch.load`, is
not compared.
"""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import sys
import types
from typing import Any, Iterator, Union

from fairseq_ext.compat.patch_registry import AFTER, all_patches

PACKAGES = ("fairseq", "fairseq_cli")
OURS = "fairseq_ext."
ARGUMENT = inspect.Parameter
Definition = Union[ast.FunctionDef, ast.ClassDef, ast.ImportFrom]


class Source(str):
    """A default value as it is written in the source."""


def signature_of(node: ast.FunctionDef) -> inspect.Signature:
    """The arguments of a definition."""
    words = node.args
    positional = [*words.posonlyargs, *words.args]
    optional = len(words.defaults)
    defaults = [None] * (len(positional) - optional) + words.defaults
    kinds = [ARGUMENT.POSITIONAL_ONLY] * len(words.posonlyargs)
    kinds += [ARGUMENT.POSITIONAL_OR_KEYWORD] * len(words.args)
    rows = [(word.arg, kind, value) for word, kind, value in zip(positional, kinds, defaults)]
    if words.vararg:
        rows.append((words.vararg.arg, ARGUMENT.VAR_POSITIONAL, None))
    named = zip(words.kwonlyargs, words.kw_defaults)
    rows += [(word.arg, ARGUMENT.KEYWORD_ONLY, value) for word, value in named]
    if words.kwarg:
        rows.append((words.kwarg.arg, ARGUMENT.VAR_KEYWORD, None))
    return inspect.Signature(
        ARGUMENT(
            name, kind, default=ARGUMENT.empty if value is None else Source(ast.unparse(value))
        )
        for name, kind, value in rows
    )


def without_first(signature: inspect.Signature) -> inspect.Signature:
    """The signature of a method without self."""
    arguments = list(signature.parameters.values())
    keep = arguments if arguments[0].kind is ARGUMENT.VAR_POSITIONAL else arguments[1:]
    return signature.replace(parameters=keep)


def is_same_default(stock: Any, value: Any) -> bool:
    """True if a default is that of the source, or the source's is no literal."""
    if isinstance(stock, Source):
        try:
            stock = ast.literal_eval(stock)
        except ValueError:
            return True
    return stock == value


def differences(stock: inspect.Signature, patched: inspect.Signature) -> list[str]:
    """What callers of the stock function cannot do with the patched one."""
    arguments = list(patched.parameters.values())
    by_place = [word for word in arguments if word.kind <= ARGUMENT.POSITIONAL_OR_KEYWORD]
    kinds = {word.kind for word in arguments}
    texts = []
    for place, word in enumerate(stock.parameters.values()):
        if word.kind in (ARGUMENT.VAR_POSITIONAL, ARGUMENT.VAR_KEYWORD):
            if word.kind not in kinds:
                texts.append(f"takes no {word}")
            continue
        if word.kind <= ARGUMENT.POSITIONAL_OR_KEYWORD:
            if place < len(by_place) and by_place[place].name != word.name:
                texts.append(f"has {by_place[place].name} in the place of {word.name}")
            if place >= len(by_place) and ARGUMENT.VAR_POSITIONAL not in kinds:
                texts.append(f"takes no {word.name} by its place")
        same = patched.parameters.get(word.name)
        if same is None:
            if ARGUMENT.VAR_KEYWORD not in kinds:
                texts.append(f"takes no {word.name} by its name")
        elif word.default is not ARGUMENT.empty and not is_same_default(word.default, same.default):
            texts.append(f"has another default of {word.name}")
    replaced = by_place[: len(stock.parameters)]  # named above
    for word in arguments:
        is_more = word.name not in stock.parameters and word not in replaced
        is_single = word.kind not in (ARGUMENT.VAR_POSITIONAL, ARGUMENT.VAR_KEYWORD)
        if is_more and is_single and word.default is ARGUMENT.empty:
            texts.append(f"needs {word.name}")
    return texts


def patched_layers(function: Any) -> Iterator[Any]:
    """The function and those that it wraps, as far as they are of the patches."""
    while isinstance(function, types.FunctionType):
        if function.__globals__.get("__name__", "").startswith(OURS):
            yield function
        function = getattr(function, "__wrapped__", None)


@functools.lru_cache(maxsize=None)
def source_of(module: str) -> ast.Module:
    """The source of an imported module."""
    return ast.parse(inspect.getsource(sys.modules[module]))


def definition(nodes: list[ast.stmt], name: str) -> Definition | None:
    """The last definition or import of a name among statements, or in their branches."""
    last = None
    for node in nodes:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name == name:
            last = node
        elif isinstance(node, ast.ImportFrom):
            if name in [word.asname or word.name for word in node.names]:
                last = node
        elif isinstance(node, (ast.If, ast.Try)):
            handlers = getattr(node, "handlers", [])
            inner = [*node.body, *(line for part in handlers for line in part.body), *node.orelse]
            last = definition(inner, name) or last
    return last


def stock_global(module: str, name: str) -> tuple[str, Definition] | None:
    """Where fairseq defines what a module calls by a name, and the definition; else None."""
    node = definition(source_of(module).body, name)
    if not isinstance(node, ast.ImportFrom):
        return None if node is None else (module, node)
    package = module if hasattr(sys.modules[module], "__path__") else module.rpartition(".")[0]
    origin = importlib.util.resolve_name("." * node.level + (node.module or ""), package)
    if origin.split(".")[0] not in PACKAGES:
        return None
    (original,) = [word.name for word in node.names if (word.asname or word.name) == name]
    importlib.import_module(origin)
    return stock_global(origin, original)


def stock_method(of_class: type, name: str) -> inspect.Signature | None:
    """The arguments, without self, of a method in fairseq's source or in other packages."""
    for base in of_class.__mro__:
        if base.__module__.startswith(OURS):
            continue
        if base.__module__.split(".")[0] not in PACKAGES:
            # Python knows no signature of its own class methods
            builtin = isinstance(vars(base).get(name), types.ClassMethodDescriptorType)
            if name in vars(base) and not builtin:
                return without_first(inspect.signature(vars(base)[name]))
            continue
        nodes: Any = source_of(base.__module__)
        for part in base.__qualname__.split("."):
            nodes = nodes and definition(nodes.body, part)
        node = definition(nodes.body, name) if isinstance(nodes, ast.ClassDef) else None
        if isinstance(node, ast.FunctionDef):
            decorators = [ast.unparse(word) for word in node.decorator_list]
            signature = signature_of(node)
            return signature if "staticmethod" in decorators else without_first(signature)
    return None


def methods_of(of_class: type) -> Iterator[tuple[str, Any, bool]]:
    """(name, function, whether it has self) of the methods that a class itself defines."""
    for name, value in list(vars(of_class).items()):
        if isinstance(value, (staticmethod, classmethod)):
            yield name, value.__func__, isinstance(value, classmethod)
        elif isinstance(value, types.FunctionType):
            yield name, value, True


def compared(module: types.ModuleType) -> Iterator[tuple[str, inspect.Signature, Any, bool]]:
    """(name, stock signature, patched function, whether it has self) of a module's functions."""
    for name, value in list(vars(module).items()):
        if isinstance(value, types.FunctionType) and any(patched_layers(value)):
            stock = stock_global(module.__name__, name)
            if stock is not None and isinstance(stock[1], ast.FunctionDef):
                yield name, signature_of(stock[1]), value, False
            elif stock is not None:  # a function in the place of a class
                build = stock_method(getattr(sys.modules[stock[0]], stock[1].name), "__init__")
                yield name, build, value, False
        elif isinstance(value, type) and value.__module__ == module.__name__:
            for method, function, has_self in methods_of(value):
                stock = any(patched_layers(function)) and stock_method(value, method)
                if stock:
                    yield f"{name}.{method}", stock, function, has_self


def compare(modules: list[str]) -> tuple[list[str], int]:
    """The differences, one line each, and the number of functions that were compared."""
    lines, number = [], 0
    for module in modules:
        for name, stock, function, has_self in compared(sys.modules[module]):
            for layer in patched_layers(function):
                signature = inspect.signature(layer, follow_wrapped=False)
                patched = without_first(signature) if has_self else signature
                place = f"{layer.__globals__['__name__']}:{layer.__code__.co_firstlineno}"
                lines += [
                    f"{module}.{name} ({place}) {text}" for text in differences(stock, patched)
                ]
                number += 1
    return lines, number


def import_patched() -> list[str]:
    """Import all modules with patches, but those whose requirements are not here; name all."""
    for patch in all_patches():
        for name in patch.modules:
            if patch.moment == AFTER and name.split(".")[0] in PACKAGES:
                try:
                    importlib.import_module(name)
                except (ImportError, NameError, OSError, ValueError):
                    continue
    imported = [name for name in sys.modules if name.split(".")[0] in PACKAGES]
    return sorted(name for name in imported if getattr(sys.modules[name], "__file__", None))


if __name__ == "__main__":
    differing, functions = compare(import_patched())
    print(*differing, f"{functions} functions", sep="\n")
