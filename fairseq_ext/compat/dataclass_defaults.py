"""Dataclass fields whose default is an instance of another dataclass.

`common: CommonConfig = CommonConfig()` is how fairseq 0.12.2 and hydra-core 1.0 nest their
options. Python 3.11 refuses every default that has no hash, to catch shared mutable defaults;
until 3.10 it refused only list, dict and set.
"""

from __future__ import annotations

import contextlib
import dataclasses
import threading
from typing import Any, Callable, Iterator

from .patch_registry import AROUND, patch, since

TOLERATED_PACKAGES = ("fairseq", "fairseq_cli", "hydra")

_dataclasses: Any = dataclasses  # its private functions have no declaration


class _Python310Rule(contextlib.ContextDecorator):
    """Context in which dataclasses of TOLERATED_PACKAGES are checked by the rule of Python 3.10.

    The check sits in the private `dataclasses._get_field`. It is replaced while at least one
    fairseq or hydra module runs its code, and put back afterwards. What other packages define in
    the meantime is checked by the present rule.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._users = 0  # modules that run at present: one imports the next
        self._present_rule: Callable[..., Any] = _dataclasses._get_field

    def __enter__(self) -> _Python310Rule:
        with self._lock:
            self._users += 1
            if self._users == 1:
                self._present_rule = _dataclasses._get_field
                _dataclasses._get_field = self._get_field
        return self

    def __exit__(self, *exception: object) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0:
                _dataclasses._get_field = self._present_rule

    def _get_field(self, owner: type, name: str, *args: Any, **kwargs: Any) -> Any:
        """Check a field by the present rule; a tolerated default has a hash meanwhile."""
        with _hashable_default(owner, name):
            return self._present_rule(owner, name, *args, **kwargs)


@contextlib.contextmanager
def _hashable_default(owner: type, name: str) -> Iterator[None]:
    """Let instances of the default's class have a hash, if the owner is tolerated.

    The check reads `default.__class__.__hash__`; while it runs the class has the hash of `object`.
    """
    default = getattr(owner, name, None)
    if isinstance(default, dataclasses.Field):
        default = default.default
    default_class: Any = type(default)
    is_tolerated = owner.__module__.partition(".")[0] in TOLERATED_PACKAGES
    if (
        not is_tolerated
        or not dataclasses.is_dataclass(default_class)
        or default_class.__hash__ is not None
    ):
        yield
        return
    # put back exactly: the class may have `__hash__ = None` itself, or inherit it
    has_hash_attribute = "__hash__" in vars(default_class)
    default_class.__hash__ = object.__hash__
    try:
        yield
    finally:
        if has_hash_attribute:
            default_class.__hash__ = None
        else:
            del default_class.__hash__


PYTHON_310_RULE = _Python310Rule()


@patch(
    *TOLERATED_PACKAGES,
    because="Python 3.11 refuses dataclass instances as defaults: importing fairseq fails with "
    "'mutable default ... use default_factory'",
    conditions=[since("python", 3, 11)],
    moment=AROUND,
)
def dataclass_instances_as_defaults(module_name: str) -> _Python310Rule:
    """Check the dataclasses of fairseq and hydra by the rule of Python 3.10."""
    return PYTHON_310_RULE
