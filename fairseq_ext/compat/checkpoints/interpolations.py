"""A checkpoint's configuration may refer to itself only.

In omegaconf, `${optimization.lr}` is the value of another option, and `${oc.env:NAME}` is what the
resolver `oc.env` returns: a variable of the environment, or whatever a resolver of hydra or of a
plugin reads. A configuration that fairseq writes has all resolvers replaced by their values.
"""

from __future__ import annotations

import re
from typing import Any

# ${optimization.lr}, ${.lr}, ${lr[0]}; a colon, quotes or a nested ${ belong to resolvers
REFERENCE = re.compile(r"\$\{[\w.\[\]-]*\}")
# hydra removes backslashes before it hands a text on
OPENING = re.compile(r"\$\\*\{")
MAX_REFERENCES = 1  # of a text: two in each of fifty lines make a text that no memory holds
MAX_VALUES = 100_000  # containers in a configuration


def is_plain(text: str) -> bool:
    """Return True unless a text contains a resolver, or more than one reference."""
    openings = len(OPENING.findall(text))
    return openings <= MAX_REFERENCES and openings == len(REFERENCE.findall(text))


def find_resolver(configuration: Any) -> str | None:
    """Return the first text of a configuration that is not plain, shortened; None without one.

    Args:
        configuration: a dict, list, Namespace or object of omegaconf, with what is inside. Nothing
            is resolved.
    """
    waiting: list[Any] = [configuration]
    seen: set[int] = set()  # a container of omegaconf knows its parent
    while waiting:
        if len(seen) > MAX_VALUES:
            return f"more than {MAX_VALUES:,} values"
        value = waiting.pop()
        if isinstance(value, str):
            if "$" in value and not is_plain(value):
                return value if len(value) <= 80 else f"{value[:77]}..."
            continue
        if id(value) in seen:
            continue
        if isinstance(value, dict):
            waiting += [*value.keys(), *value.values()]
        elif isinstance(value, (list, tuple, set, frozenset)):
            waiting += value
        elif type(value).__module__.partition(".")[0] in ("argparse", "omegaconf"):
            # not through its methods, which resolve
            waiting += vars(value).values() if hasattr(value, "__dict__") else ()
        else:
            continue
        seen.add(id(value))
    return None
