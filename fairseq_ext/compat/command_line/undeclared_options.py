"""fairseq-hydra-train with classes that declare their options by `add_args`, without a dataclass.

Of fairseq 0.12.2 these are most models and optimisers, and tasks such as speech_to_text and
denoising. On the command line they find all options of the training in one namespace.
"""

from __future__ import annotations

import argparse
import dataclasses
import enum
import functools
import logging
from typing import Any, Mapping

from ..patch_registry import PatchedModule, patch
from ..plain_options import plain_options
from ..surrounded_calls import call_after, call_before
from ..user_errors import OptionError, hint_for
from .boolean_options import boolean

# the model last: its task may change what it has
GROUPS = ("task", "criterion", "optimizer", "lr_scheduler", "model")
# the sections of a training, of which those that choose a class have its name; of an option that
# is in several, the last one's value counts
CHOICES = ("model", "scoring", "bpe", "tokenizer", "lr_scheduler", "optimizer", "criterion", "task")
SETTINGS = ("common", "dataset", "distributed_training", "optimization", "checkpoint", "ema")
FLAGS = (argparse._StoreTrueAction, argparse._StoreFalseAction)  # options without a value
NAMES = {"model": "arch"}  # {section: the option that names its class, where that is another}

logger = logging.getLogger(__name__)


@patch(
    "fairseq.dataclass.initialize",
    because="fairseq 0.12.2: fairseq-hydra-train gives classes without a dataclass neither their "
    "defaults nor the options of others: RoBERTa has 512 positions whatever tokens_per_sample "
    "says, lstm ends in 'Missing key criterion', sgd in 'Missing key lr', speech_to_text in "
    "'Could not infer task type'",
)
def undeclared_classes_have_their_options(module: PatchedModule) -> None:
    """Give such a class what the command line gives it: its defaults, and all other options."""
    call_after(module, "add_defaults", complete_sections)


@patch(
    "fairseq_cli.train",
    because="fairseq 0.12.2: a name that nobody has registered, in a configuration of hydra, ends "
    "in KeyError: '_name' or in a list of all tasks",
)
def names_of_sections_are_registered(module: PatchedModule) -> None:
    """Refuse such a name when the plugin is imported, which may register it."""
    call_after(module, "add_defaults", check_names)


@patch(
    "fairseq_cli.hydra_train",
    because="omegaconf 2.1: `+dataset.max_token=4` adds an option that nothing reads",
)
def added_settings_are_declared(module: PatchedModule) -> None:
    """Warn of what the user adds with a plus sign to sections that fairseq declares."""
    call_before(module, "_hydra_main", warn_of_added)


def check_names(cfg: Any) -> None:
    """Raise OptionError if a section names a class that is not registered."""
    for group in GROUPS:
        section = cfg.get(group)
        name = section if isinstance(section, str) else getattr(section, "_name", None)
        if isinstance(name, str):
            classes, _, names = registered_classes(group)
            if names.get(name, name) not in classes:
                declared = {*classes, *names}
                raise OptionError(
                    f"{group}._name {name} is not registered{hint_for(name, declared)}; allowed: "
                    f"what `fairseq-train --help` lists, or what common.user_dir registers"
                )


def warn_of_added(cfg: Any, **kwargs: Any) -> None:
    """Warn of each option of a declared section that its dataclass does not have."""
    from fairseq.dataclass.configs import FairseqConfig

    sections = {entry.name: entry for entry in dataclasses.fields(FairseqConfig)}
    for name in cfg:
        if name not in sections:
            _warn(f"{name}: fairseq reads no such section{hint_for(name, sections)}")
        elif name in SETTINGS and cfg.get(name) is not None:
            declaration: Any = sections[name].type
            options = {entry.name for entry in dataclasses.fields(declaration)}
            for key in {*cfg[name]} - options:
                _warn(f"{name}.{key}: fairseq reads no such option{hint_for(key, options)}")


def complete_sections(cfg: Any) -> None:
    """Make the section of each chosen class that has no dataclass a namespace with all options.

    What the user wrote there wins over its own defaults, and these over the options of others.
    """
    from omegaconf import AnyNode

    for group in GROUPS:
        section = cfg.get(group)
        name = section if isinstance(section, str) else getattr(section, "_name", None)
        if isinstance(section, argparse.Namespace) or not isinstance(name, str):
            continue
        registered = undeclared_class(group, name)
        if registered is not None:
            typed = {"_name": name} if isinstance(section, str) else plain(section)
            check_references(group, section, typed)
            namespace = all_options(cfg, group, registered, typed)
            # a node of its own: a plain value would be written into the section that is there
            cfg[group] = AnyNode(namespace, flags={"allow_objects": True})
            copy_values(cfg, group, namespace)


def copy_values(cfg: Any, group: str, namespace: argparse.Namespace) -> None:
    """Replace references of other sections to one that omegaconf can no longer look into."""
    from omegaconf import DictConfig, OmegaConf

    for name in (*SETTINGS, *CHOICES):
        section = cfg.get(name)
        if not isinstance(section, DictConfig):
            continue
        for key, reference in OmegaConf.to_container(section, resolve=False).items():
            place, _, option = str(reference)[2:-1].partition(".")
            is_reference = OmegaConf.is_interpolation(section, key) and place == group
            if is_reference and hasattr(namespace, option):
                section[key] = getattr(namespace, option)


def check_references(group: str, section: Any, typed: Mapping[str, Any]) -> None:
    """Raise OptionError for an option whose reference leads nowhere, or that is still missing."""
    from omegaconf import OmegaConf

    for key in section if OmegaConf.is_dict(section) else ():
        if key not in typed:
            text = OmegaConf.to_container(section, resolve=False)[key]
            raise OptionError(
                f"{group}.{key} {text} has no value; allowed: a value, or an option with one"
            )


def all_options(
    cfg: Any, group: str, registered: Any, typed: Mapping[str, Any]
) -> argparse.Namespace:
    """Return what the class of a section finds on the command line.

    OptionError for a value that an option does not take; a warning for a name that nobody declares.
    """
    name = typed["_name"]
    parser = parser_of(group, registered)
    actions = {action.dest: action for action in parser._actions}
    others = options_of_others(cfg, group)
    values = {key: converted(group, value, actions.get(key)) for key, value in typed.items()}
    warn_of_unknown(group, name, values, {*actions, *others})
    chosen = {NAMES.get(group, group): name}
    return argparse.Namespace(**{**others, **defaults_of(parser), **chosen, **values})


def plain(section: Any) -> dict[str, Any]:
    """Return the options of a section that have a value; choices are texts, as when typed."""
    options = plain_options(section)
    is_choice = {name: isinstance(value, enum.Enum) for name, value in options.items()}
    return {name: str(value) if is_choice[name] else value for name, value in options.items()}


def undeclared_class(group: str, name: str) -> Any:
    """Return the class that is registered by a name without a dataclass; None if there is none."""
    classes, declarations, names = registered_classes(group)
    name = names.get(name, name)
    return None if declarations.get(name) is not None else classes.get(name)


def registered_classes(group: str) -> tuple[dict[str, Any], dict[str, Any], dict[str, str]]:
    """Return the classes of a section, their dataclasses, and the models of architectures."""
    from fairseq.models import ARCH_MODEL_NAME_REGISTRY, MODEL_DATACLASS_REGISTRY, MODEL_REGISTRY
    from fairseq.registry import REGISTRIES
    from fairseq.tasks import TASK_DATACLASS_REGISTRY, TASK_REGISTRY

    if group == "model":
        return MODEL_REGISTRY, MODEL_DATACLASS_REGISTRY, ARCH_MODEL_NAME_REGISTRY
    if group == "task":
        return TASK_REGISTRY, TASK_DATACLASS_REGISTRY, {}
    registry = REGISTRIES[group]
    return registry["registry"], registry["dataclass_registry"], {}


def parser_of(group: str, registered: Any) -> argparse.ArgumentParser:
    """Return a parser of the options that the `add_args` of a class declares."""
    # fairseq gives the options of a model no default but those that are named
    default = argparse.SUPPRESS if group == "model" else None
    parser = argparse.ArgumentParser(
        add_help=False, conflict_handler="resolve", argument_default=default
    )
    if hasattr(registered, "add_args"):
        registered.add_args(parser)
    return parser


def defaults_of(parser: argparse.ArgumentParser) -> dict[str, Any]:
    """Return the defaults of a parser, as argparse converts them."""
    defaults: dict[str, Any] = {}
    for action in list(parser._actions):
        action.required = False
        if not action.option_strings:  # `data`, the folder of the training, has no default
            parser._actions.remove(action)
            defaults[action.dest] = None
    return {**defaults, **vars(parser.parse_args([]))}


def options_of_others(cfg: Any, group: str) -> dict[str, Any]:
    """Return the options of all other sections in one, with the name of each chosen class."""
    options: dict[str, Any] = {}
    for name in (*SETTINGS, *CHOICES):
        if name == group or name not in cfg:
            continue
        section = cfg.get(name)
        if isinstance(section, argparse.Namespace):
            values = vars(section).copy()
        else:
            is_name = section is None or isinstance(section, str)
            values = {"_name": section} if is_name else plain(section)
        if name in CHOICES:
            options[NAMES.get(name, name)] = values.get("_name")
        values.pop("_name", None)
        options.update(values)
    return options


def converted(group: str, value: Any, action: argparse.Action | None) -> Any:
    """Return the value of an option as it is on the command line: `true` is "True" for a text.

    OptionError if the option does not take it.
    """
    if action is None or not isinstance(value, (str, int, float)):
        return value
    if isinstance(action, FLAGS) and isinstance(value, str):  # in quotes, or of a variable
        kind: Any = boolean
    elif action.nargs is not None:
        return value
    else:
        kind = action.type or str
    try:
        value = kind(str(value)) if callable(kind) else value
    except (TypeError, ValueError, argparse.ArgumentTypeError) as error:
        allowed = f"what {getattr(kind, '__name__', 'value')} takes"
        allowed = "true or false" if isinstance(action, FLAGS) else allowed
        text = f"{group}.{action.dest} {value} is not allowed; allowed: {allowed}"
        raise OptionError(text) from error
    if action.choices is not None and value not in action.choices:
        allowed = ", ".join(map(str, action.choices))
        raise OptionError(f"{group}.{action.dest} {value} is not allowed; allowed: {allowed}")
    if type(action).__module__ == "argparse":
        return value
    namespace = argparse.Namespace()  # such as FileContentsAction: a file has the value
    action(argparse.ArgumentParser(), namespace, value, None)
    return getattr(namespace, action.dest)


def warn_of_unknown(group: str, name: str, typed: Mapping[str, Any], declared: set[str]) -> None:
    """Warn of what the user wrote that neither the class nor another section declares.

    A model may read such an option, as some do for old checkpoints.
    """
    architectures: dict[str, Any] = {}
    if group == "model":
        from fairseq.models import ARCH_CONFIG_REGISTRY

        args = argparse.Namespace(**typed)
        ARCH_CONFIG_REGISTRY.get(name, lambda args: None)(args)
        architectures = {key: value for key, value in vars(args).items() if key not in typed}
    declared = declared | architectures.keys()
    for key in typed:
        if not key.startswith("_") and key not in declared:
            _warn(f"{group}.{key}: {name} declares no such option{hint_for(key, declared)}")


@functools.lru_cache(maxsize=None)
def _warn(text: str) -> None:
    logger.warning(text)
