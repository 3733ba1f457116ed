"""hydra-core: --config-name, programs that use its new API, and Python 3.12, 3.13 and 3.14."""

from __future__ import annotations

import argparse
import functools
import importlib
import os
import pkgutil
import sys
import types
import typing
from pathlib import Path
from typing import Any, Iterator, Optional

from ..module_overlay import overlay_names
from ..patch_registry import BEFORE, PatchedModule, patch, since, until
from ..user_errors import OptionError

# what fairseq-hydra-train reads without --config-name
DEFAULT_NAME = "config"
_NO_PATH = object()


@patch(
    "fairseq_cli.hydra_train",
    because="fairseq 0.12.2 registers its defaults under any --config-name: one without a file "
    "trains with the defaults, without a word",
)
def named_configurations_exist(module: PatchedModule) -> None:
    """Refuse a --config-name of which there is no file."""
    stock = module.hydra_init

    def hydra_init(cfg_name: str = DEFAULT_NAME) -> None:
        from hydra._internal.utils import get_args

        words = get_args()
        check_config_name(cfg_name, words.config_dir, words.config_path)
        stock(cfg_name)

    module.hydra_init = hydra_init


def check_config_name(name: str, config_dir: Optional[str], config_path: Optional[str]) -> None:
    """Raise OptionError if hydra finds no file of a configuration.

    Args:
        name: value of --config-name, with or without ``.yaml``.
        config_dir, config_path: values of --config-dir and --config-path.
    """
    # hydra reads these from an installed package
    if name == DEFAULT_NAME or (config_path or "").startswith("pkg://"):
        return
    import fairseq_cli

    # hydra's --config-path begins at the file of the command
    command = Path(str(fairseq_cli.__file__)).parent
    folders = [command / (config_path or "../fairseq/config")]
    if config_dir:
        folders.append(Path(config_dir))
    file = name if name.endswith(".yaml") else f"{name}.yaml"
    if not any((folder / file).is_file() for folder in folders):
        folder = config_dir or config_path
        raise OptionError(
            f"--config-name {name}: there is no {file} in {folder}; allowed: a file of this folder"
            if folder
            else f"--config-name {name}: add --config-dir, the folder of {file}"
        )


@patch(
    "hydra.main",
    because="hydra-core 1.1 takes config_path as text only: speech_recognition/new/infer, which "
    "gives a path, ends in an AttributeError",
    conditions=[since("hydra", 1, 1)],
)
def config_paths_are_text(module: PatchedModule) -> None:
    """Turn a path into text."""
    stock = module.main

    @functools.wraps(stock)
    def main(config_path: Any = _NO_PATH, *args: Any, **kwargs: Any) -> Any:
        if isinstance(config_path, os.PathLike):
            config_path = os.fspath(config_path)
        paths = () if config_path is _NO_PATH else (config_path,)
        return stock(*paths, *args, **kwargs)

    module.main = main


@patch(
    "fairseq.dataclass.utils",
    because="hydra-core 1.2 drops hydra.experimental for programs that ask for the API of 1.2 or "
    "later: fairseq in a program with @hydra.main(version_base=None) fails with 'no longer "
    "experimental. Use hydra.initialize()'",
    conditions=[since("hydra", 1, 2)],
)
def options_compose_under_any_version_base(module: PatchedModule) -> None:
    """Convert options by the API of hydra 1.1, whatever the program asked for, and put it back."""
    stock = module.convert_namespace_to_omegaconf

    def convert_namespace_to_omegaconf(args: argparse.Namespace) -> Any:
        from hydra.version import VersionBase, __compat_version__

        base = VersionBase.instance()
        of_the_program = base.version_base
        base.setbase(__compat_version__)
        try:
            return stock(args)
        finally:
            base.version_base = of_the_program

    module.convert_namespace_to_omegaconf = convert_namespace_to_omegaconf


@patch(
    "fairseq.dataclass.utils",
    because="hydra-core 1.1 composes no entry that a configuration lacks: the choice of a plugin's "
    "own registry (fairseq.registry.setup_registry) ends in 'Could not override ...'",
    conditions=[since("hydra", 1, 1)],
)
def registries_of_plugins_compose(module: PatchedModule) -> None:
    """Compose the configuration without such choices, and add them as hydra 1.0 does."""
    stock_words, stock = module.override_module_args, module.convert_namespace_to_omegaconf

    def override_module_args(args: argparse.Namespace) -> tuple[list[str], list[str]]:
        added = registries_beside(module.FairseqConfig)
        overrides, deletes = stock_words(args)
        names = [word.partition("=")[0].partition(".")[0] for word in overrides]
        words = [word for name, word in zip(names, overrides) if name not in added]
        return words, [name for name in deletes if name not in added]

    @functools.wraps(stock)
    def convert_namespace_to_omegaconf(args: argparse.Namespace) -> Any:
        cfg = stock(args)
        choices = {
            name: chosen_entry(getattr(args, name, None), registry["dataclass_registry"], args)
            for name, registry in registries_beside(module.FairseqConfig).items()
        }
        with module.open_dict(cfg):
            cfg.update(choices)
        return cfg

    module.override_module_args = override_module_args
    module.convert_namespace_to_omegaconf = convert_namespace_to_omegaconf


def registries_beside(config: Any) -> dict[str, Any]:
    """Return {name: registry} of those that are no field of a dataclass."""
    from fairseq.registry import REGISTRIES

    fields = config.__dataclass_fields__
    return {name: registry for name, registry in REGISTRIES.items() if name not in fields}


def chosen_entry(name: Optional[str], dataclasses: dict[str, Any], args: argparse.Namespace) -> Any:
    """Return what a configuration holds of a choice: its name, and options, if it has any.

    dataclasses: {name: the dataclass of an entry that has one}.
    """
    if name not in dataclasses:
        return name
    from omegaconf import OmegaConf

    options = OmegaConf.structured(dataclasses[name].from_namespace(args))
    values: Any = OmegaConf.to_container(options, enum_to_str=True)
    return {**values, "_name": name}


@patch(
    "hydra.core.plugins",
    because="Python 3.12 dropped find_module from importers, with which hydra-core < 1.1 looks "
    "for its plugins: 'FileFinder' object has no attribute 'find_module'",
    conditions=[since("python", 3, 12), until("hydra", 1, 1)],
)
def hydra_plugin_scan(module: PatchedModule) -> None:
    """Give hydra's scan importers that still have `find_module(name).load_module(name)`."""
    # hydra calls these two functions alone, for each module of its plugins
    loader = types.SimpleNamespace(load_module=importlib.import_module)
    importer: Any = types.SimpleNamespace(find_module=lambda name: loader)

    def walk_packages(*args: Any, **kwargs: Any) -> Iterator[pkgutil.ModuleInfo]:
        for info in pkgutil.walk_packages(*args, **kwargs):
            yield pkgutil.ModuleInfo(importer, info.name, info.ispkg)

    # for hydra.core.plugins alone
    module.pkgutil = types.SimpleNamespace(walk_packages=walk_packages)


@patch(
    "antlr4",
    because="Python 3.13 dropped typing.io, from which antlr4 4.8 and hydra-core 1.0 import TextIO",
    conditions=[since("python", 3, 13)],
    moment=BEFORE,
)
def typing_io(module_name: str) -> None:
    """Provide the module `typing.io` with the three names it had."""
    if "typing.io" not in sys.modules:
        module = types.ModuleType("typing.io", "The file types of typing, as until Python 3.12.")
        for name in ("IO", "TextIO", "BinaryIO"):
            setattr(module, name, getattr(typing, name))
        sys.modules["typing.io"] = module


class LazyHelpParser(argparse.ArgumentParser):
    """A parser of which the help of an option may be any object, which is rendered when shown."""

    def add_argument(self, *names: Any, **settings: Any) -> argparse.Action:
        """Add an option; help that is no text is kept from the check of Python 3.14."""
        if isinstance(settings.get("help", ""), str):
            return super().add_argument(*names, **settings)
        lazy = settings.pop("help")
        action = super().add_argument(*names, **settings)
        action.help = lazy
        return action


@patch(
    "hydra._internal.utils",
    because="Python 3.14 checks the help of an option when it is added, and hydra-core computes "
    "one later: fairseq-hydra-train fails with 'badly formed help string'",
    conditions=[since("python", 3, 14)],
)
def lazy_help(module: PatchedModule) -> None:
    """Give hydra a parser that takes its LazyCompletionHelp."""
    overlay_names(module, "argparse", ArgumentParser=LazyHelpParser)
