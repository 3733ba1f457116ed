"""Options to configurations as fairseq's commands convert them, in a fraction of the time.

Of 0.35 s hydra spends most on reading some 290 overrides `group.option=value` and on composing the
groups. Both repeat from test to test: texts are read once, and groups composed once for each choice
of task, architecture and so on. The values are then written by hydra's own function, those alone
that are not the same as the first time.
test_composition.py compares the results with hydra's.
"""

import contextlib
import copy
import functools
from pathlib import Path
from unittest import mock

import hydra
from fairseq.dataclass import utils
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra.core.config_store import ConfigStore
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import OmegaConf

CONFIGURATIONS = Path(utils.__file__).parents[1] / "config"
_compose = utils.compose
# what was chosen, and the names of the values -> nodes, a configuration, overrides that are in it
_composed = {}


@functools.lru_cache(maxsize=None)
def _override(text):
    """An override, as hydra reads it."""
    (override,) = OverridesParser.create().parse_overrides([text])
    return override


def _nodes(overrides):
    """What is registered under the chosen names: tests register classes of their own."""
    groups = ConfigStore.instance().repo
    nodes = [groups["config.yaml"]]
    for override in overrides:
        names = groups.get(override.key_or_group, {})
        nodes.append(names.get(f"{override.value()}.yaml"))
    return nodes


def _initialize(config_path):
    """Return a context that does nothing: ``_quick_compose`` begins hydra where it needs it."""
    return contextlib.nullcontext()


def _quick_compose(config_name, overrides, strict):
    """Return what hydra's ``compose`` returns."""
    read = [(text, _override(text)) for text in overrides]
    groups = [text for text, override in read if "." not in override.key_or_group]
    values = [override for _, override in read if "." in override.key_or_group]
    nodes = _nodes([override for _, override in read if "." not in override.key_or_group])
    key = (config_name, *groups, *(override.key_or_group for override in values))
    stored, config, written = _composed.get(key, (None, None, ()))
    if stored is None or any(before is not node for before, node in zip(stored, nodes)):
        with hydra.initialize_config_dir(str(CONFIGURATIONS), version_base="1.1"):
            config = _compose(config_name, overrides=groups, strict=strict)
        _write(values, config, strict)
        written = values
        _composed[key] = nodes, config, written
    config = copy.deepcopy(config)
    # equal texts are one object: they are read once
    _write([new for new, old in zip(values, written) if new is not old], config, strict)
    return config


def _write(values, config, strict):
    """Set the values of overrides in a configuration."""
    OmegaConf.set_struct(config, True)
    ConfigLoaderImpl._apply_overrides_to_config(values, config)
    OmegaConf.set_struct(config, strict)


# functions that fairseq.dataclass.utils takes from hydra
IN_PLACE_OF_HYDRA = {"compose": _quick_compose, "initialize": _initialize}


def converted(args):
    """The configuration of parsed options (argparse.Namespace)."""
    with mock.patch.multiple(utils, **IN_PLACE_OF_HYDRA):
        return utils.convert_namespace_to_omegaconf(args)
