"""fairseq-hydra-train with classes that declare their options by `add_args`, without a dataclass.

Of fairseq 0.12.2 these are most models and optimisers, and tasks such as speech_to_text and
denoising. On the command line they find all options of the training in one namespace.
"""

from __future__ import annotations

import argparse
import functools
import logging
from typing import Any, Mapping

from ..patch_registry import PatchedModule, patch
from ..surrounded_calls import call_after
from ..user_errors import OptionError, hint_for

# the model last: its task may change what it has
GROUPS = ("task", "criterion", "optimizer", "lr_scheduler", "model")
# the sections of a training, of which those that choose a class have its name; of an option that
# is in several, the last one's value counts
CHOICES = ("model", "scoring", "bpe", "tokenizer", "lr_scheduler", "optimizer", "criterion", "task")
SETTINGS = ("common", "dataset", "distributed_training", "optimization", "checkpoint", "ema")
MISSING = "???"  # of an option without a value, in omegaconf
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
            namespace = all_options(cfg, group, registered, typed)
            # a node of its own: a plain value would be written into the section that is there
            cfg[group] = AnyNode(namespace, flags={"allow_objects": True})


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
    """Return the options of a section as dicts, lists and texts, with references resolved."""
    from omegaconf import OmegaConf

    container = OmegaConf.to_container(section, resolve=True, enum_to_str=True)
    assert isinstance(container, dict)  # a section is no list
    return {str(key): value for key, value in container.items()}


def undeclared_class(group: str, name: str) -> Any:
    """Return the class that is registered by a name without a dataclass; None if there is none."""
    from fairseq.models import ARCH_MODEL_NAME_REGISTRY, MODEL_DATACLASS_REGISTRY, MODEL_REGISTRY
    from fairseq.registry import REGISTRIES
    from fairseq.tasks import TASK_DATACLASS_REGISTRY, TASK_REGISTRY

    if group == "model":
        name = ARCH_MODEL_NAME_REGISTRY.get(name, name)
        classes, declarations = MODEL_REGISTRY, MODEL_DATACLASS_REGISTRY
    elif group == "task":
        classes, declarations = TASK_REGISTRY, TASK_DATACLASS_REGISTRY
    else:
        registry = REGISTRIES[group]
        classes, declarations = registry["registry"], registry["dataclass_registry"]
    return None if declarations.get(name) is not None else classes.get(name)


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
    for action in parser._actions:
        action.required = False
        if not action.option_strings:
            action.nargs = "?"  # `data`, the folder of the training, has no default
    return vars(parser.parse_args([]))


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
        options.update((key, value) for key, value in values.items() if value != MISSING)
    return options


def converted(group: str, value: Any, action: argparse.Action | None) -> Any:
    """Return the value of an option as it is on the command line: `true` is "True" for a text.

    OptionError if the option does not take it.
    """
    if action is None or action.nargs is not None or not isinstance(value, (str, int, float)):
        return value
    kind = action.type or str
    try:
        value = kind(str(value)) if callable(kind) else value
    except (TypeError, ValueError, argparse.ArgumentTypeError) as error:
        name = getattr(kind, "__name__", "value")
        text = f"{group}.{action.dest} {value} is not allowed; allowed: what {name} takes"
        raise OptionError(text) from error
    if action.choices is not None and value not in action.choices:
        allowed = ", ".join(map(str, action.choices))
        raise OptionError(f"{group}.{action.dest} {value} is not allowed; allowed: {allowed}")
    return value


def warn_of_unknown(group: str, name: str, typed: Mapping[str, Any], known: set[str]) -> None:
    """Warn of what the user wrote that neither the class nor another section declares.

    A model may read such an option, as some do for old checkpoints.
    """
    architectures: dict[str, Any] = {}
    if group == "model":
        from fairseq.models import ARCH_CONFIG_REGISTRY

        args = argparse.Namespace(**typed)
        ARCH_CONFIG_REGISTRY.get(name, lambda args: None)(args)
        architectures = {key: value for key, value in vars(args).items() if key not in typed}
    known = known | architectures.keys()
    for key in typed:
        if not key.startswith("_") and key not in known:
            _warn(f"{group}.{key}: {name} declares no such option{hint_for(key, known)}")


@functools.lru_cache(maxsize=None)
def _warn(text: str) -> None:
    logger.warning(text)
