"""Dataclass fields whose default is an instance of another dataclass.

`common: CommonConfig = CommonConfig()` is how fairseq 0.12.2 and hydra-core 1.0 nest their
options. Python 3.11 refuses every default that has no hash, to catch shared mutable defaults;
until 3.10 it refused only list, dict and set.
"""

import contextlib
import dataclasses
import threading

from .registry import AROUND, patch, since

TOLERATED = ("fairseq", "fairseq_cli", "hydra")


class _OldRule(contextlib.ContextDecorator):
    """Context in which dataclasses of TOLERATED modules are checked by the rule of Python 3.10.

    The check sits in the private `dataclasses._get_field`; it is replaced while at least one
    fairseq or hydra module runs its code, and put back afterwards. What other packages define in
    the meantime is checked by the present rule.
    """

    def __init__(self):
        self._lock = threading.RLock()
        self._users = 0
        self._present_rule = None

    def __enter__(self):
        with self._lock:
            self._users += 1
            if self._users == 1:
                self._present_rule = dataclasses._get_field
                dataclasses._get_field = self._get_field
        return self

    def __exit__(self, *exception):
        with self._lock:
            self._users -= 1
            if self._users == 0:
                dataclasses._get_field = self._present_rule
        return False

    def _get_field(self, owner, name, *rest, **named):
        with _hashable(owner, name):
            return self._present_rule(owner, name, *rest, **named)


@contextlib.contextmanager
def _hashable(owner, name):
    """Let instances of the default's class have a hash, if the owner is tolerated.

    The check reads `default.__class__.__hash__`; while it runs the class has the hash of `object`.
    """
    default = getattr(owner, name, None)
    if isinstance(default, dataclasses.Field):
        default = default.default
    kind = type(default)
    tolerated = owner.__module__.partition(".")[0] in TOLERATED
    if not tolerated or not dataclasses.is_dataclass(kind) or kind.__hash__ is not None:
        yield
        return
    own = "__hash__" in vars(kind)
    kind.__hash__ = object.__hash__
    try:
        yield
    finally:
        if own:
            kind.__hash__ = None
        else:
            del kind.__hash__


OLD_RULE = _OldRule()


@patch(
    *TOLERATED,
    because="Python 3.11 refuses dataclass instances as defaults: importing fairseq fails with "
    "'mutable default ... use default_factory'",
    conditions=[since("python", 3, 11)],
    moment=AROUND,
)
def dataclass_instances_as_defaults(module_name):
    """Check the dataclasses of fairseq and hydra by the rule of Python 3.10."""
    return OLD_RULE
