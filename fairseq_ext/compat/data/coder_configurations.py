"""Sub-word coders and tokenizers without a configuration."""

from __future__ import annotations

import functools
import os
from argparse import Namespace
from typing import Any, Callable

from ..command_line.named_files import FILES
from ..patch_registry import PatchedModule, patch
from ..user_errors import option_of
from .data_files import UnreadableFile


@patch(
    "fairseq.data.encoders",
    because='fairseq 0.12.2: --bpe characters, --bpe bytes and coders of plugins end in "Could not '
    "find 'bpe/characters'\", because they have no configuration",
)
def coders_have_configurations(module: PatchedModule) -> None:
    """Store an empty configuration for every tokenizer and sub-word coder without one."""
    from fairseq.registry import REGISTRIES

    for group in ("bpe", "tokenizer"):
        coders = REGISTRIES[group]
        for name in set(coders["registry"]) - set(coders["dataclass_registry"]):
            store_configuration(group, name)
        register = getattr(module, f"register_{group}")
        setattr(module, f"register_{group}", storing_configurations(group, register))


def store_configuration(group: str, name: str) -> None:
    """Let hydra find a choice of a group; it has no options."""
    from fairseq.dataclass import FairseqDataclass
    from hydra.core.config_store import ConfigStore

    node = FairseqDataclass(_name=name)
    ConfigStore.instance().store(name=name, group=group, node=node, provider="fairseq")


def storing_configurations(group: str, register: Callable[..., Any]) -> Callable[..., Any]:
    """Return a decorator for plugins: `register`, and a configuration where they give none."""

    @functools.wraps(register)
    def register_coder(name: str, dataclass: Any = None) -> Callable[[type], type]:
        decorate: Callable[[type], type] = register(name, dataclass)
        if dataclass is not None:
            return decorate

        def register_class(coder: type) -> type:
            decorate(coder)
            store_configuration(group, name)
            delattr(coder, "__dataclass")  # None, which fairseq's parser would call
            return coder

        return register_class

    return register_coder


@patch(
    "fairseq.data.encoders",
    because="fairseq 0.12.2: errors in a file of sub-words name neither the option nor the file",
)
def files_of_coders_are_named(module: PatchedModule) -> None:
    """Name the options of the files of a coder that cannot be made."""
    stock = module.build_bpe

    @functools.wraps(stock)
    def build_bpe(cfg: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return stock(cfg, *args, **kwargs)
        except ImportError:
            raise  # names the package
        except Exception as error:
            files = {name: getattr(cfg, name, None) for name in FILES}
            named = " ".join(option_of(name, path) for name, path in files.items() if path)
            if not named:
                raise
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise UnreadableFile(f"{named}: cannot be read as sub-words: {reason}") from error

    module.build_bpe = build_bpe


@patch(
    "fairseq.dataclass.utils",
    because="fairseq 0.12.2: --tokenizer moses without -s and -t ends in 'Error merging override "
    "tokenizer.source_lang=null', although the task finds the languages in the data folder",
)
def tokenizers_find_their_languages(module: PatchedModule) -> None:
    """Give a tokenizer the languages of the data folder where -s and -t leave them out."""
    stock = module._override_attr

    @functools.wraps(stock)
    def _override_attr(sub_node: str, data_class: Any, args: Namespace) -> list[str]:
        if sub_node == "tokenizer":
            args = with_languages(data_class, args)
        overrides: list[str] = stock(sub_node, data_class, args)
        return overrides

    module._override_attr = _override_attr


def with_languages(data_class: Any, args: Namespace) -> Namespace:
    """Return the options with the languages of the data folder in the place of those without value.

    Without a pair there the defaults of the tokenizer hold: no text is read in a training.
    """
    declared = getattr(data_class, "__dataclass_fields__", {})
    names = ("source_lang", "target_lang")
    missing = [name for name in names if name in declared and getattr(args, name, "") is None]
    if not missing:
        return args
    from fairseq import utils
    from fairseq.data.data_utils import infer_language_pair

    options = vars(args).copy()
    folder = (utils.split_paths(args.data) if getattr(args, "data", None) else [""])[0]
    pair = infer_language_pair(folder) if os.path.isdir(folder) else (None, None)
    for name, language in zip(names, pair):
        if name in missing and language is not None:
            options[name] = language
        elif name in missing:
            del options[name]
    return Namespace(**options)
