"""The options of a section of a configuration as plain values."""

from __future__ import annotations

import contextlib
from typing import Any


def plain_options(section: Any) -> dict[str, Any]:
    """Return the options of an omegaconf dict that have a value, as dicts, lists and scalars.

    Options that refer to a section that is not there are left out: some programs compose a model's
    options alone.
    """
    from omegaconf import OmegaConf
    from omegaconf.errors import InterpolationKeyError

    options: dict[str, Any] = {}
    for name in section:
        with contextlib.suppress(InterpolationKeyError):
            if not OmegaConf.is_missing(section, name):
                value = section[name]
                is_container = OmegaConf.is_config(value)
                plain = OmegaConf.to_container(value, resolve=True) if is_container else value
                options[str(name)] = plain
    return options
