"""`fairseq-ext list`: what this package registers with fairseq, by system."""

import argparse
import json
from typing import Any, Dict, Iterator, List, Optional

from ...compat.user_errors import option_of
from .. import UsageError

Systems = Dict[str, Dict[str, List[Dict[str, str]]]]
# {kind: its name in fairseq.registry.REGISTRIES, where it has one}
KINDS = {
    "architectures": None,
    "tasks": None,
    "criterions": "criterion",
    "optimizers": "optimizer",
    "lr_schedulers": "lr_scheduler",
    "scorers": "scoring",
    "tokenizers": "tokenizer",
    "bpes": "bpe",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `fairseq-ext list`."""
    parser.add_argument(
        "name",
        nargs="?",
        metavar="NAME",
        help="architecture, task or criterion whose options to show",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def system_of(registered: type) -> Optional[str]:
    """Return the system (`dual`, `streams`, ...) that defines a class, None if it is not ours."""
    package, _, rest = registered.__module__.partition(".")
    # the package may have any name: --user-dir
    return rest.partition(".")[0] if package == __name__.partition(".")[0] else None


def summary(registered: type) -> str:
    """Return the first sentence of a class's own docstring, on one line; empty without one."""
    text = " ".join((registered.__dict__.get("__doc__") or "").split())
    return text.partition(". ")[0].rstrip(".")


def registries() -> Dict[str, Dict[str, Any]]:
    """Return {kind: {name: class}}, fairseq's own entries included."""
    from fairseq.models import ARCH_MODEL_REGISTRY
    from fairseq.registry import REGISTRIES
    from fairseq.tasks import TASK_REGISTRY

    # these two are older than the module `registry` and have variables of their own
    own_variables = {"architectures": ARCH_MODEL_REGISTRY, "tasks": TASK_REGISTRY}
    return {
        kind: own_variables[kind] if registry is None else REGISTRIES[registry]["registry"]
        for kind, registry in KINDS.items()
    }


def catalogue() -> Systems:
    """Return {system: {kind: [{name, model, summary}]}}, everything sorted by name.

    `model` is, for architectures only, the registered model whose options they preset. Imports
    fairseq; the caller has imported this package, which registers everything.
    """
    from fairseq.models import ARCH_MODEL_NAME_REGISTRY

    systems: Systems = {}
    for kind, registry in registries().items():
        for name, registered in sorted(registry.items()):
            system = system_of(registered)
            if system is None:
                continue
            entry = {"name": name, "summary": summary(registered)}
            if kind == "architectures":
                entry["model"] = ARCH_MODEL_NAME_REGISTRY[name]
            # every kind, so that JSON has the same keys
            systems.setdefault(system, {k: [] for k in KINDS})[kind].append(entry)
    return dict(sorted(systems.items()))


def lines(systems: Systems) -> Iterator[str]:
    """Yield the catalogue as text, one entry a line."""
    for system, kinds in systems.items():
        yield system
        for kind in KINDS:
            for entry in kinds[kind]:
                model = entry.get("model", entry["name"])
                note = entry["summary"] if model == entry["name"] else f"sizes for {model}"
                yield f"  {kind[:-1]:<12}  {entry['name']:<36}  {note}".rstrip()


class DefaultsInHelp(argparse.ArgumentDefaultsHelpFormatter):
    """Help texts with the default of each option that has one; None is none."""

    def _get_help_string(self, action: argparse.Action) -> Optional[str]:
        return action.help if action.default is None else super()._get_help_string(action)


def model_defaults(model: type) -> Dict[str, Any]:
    """Return {option: default} of a model's dataclass, without what it takes from other options.

    fairseq's ``add_args`` leaves them out, so that architectures can set their own.
    """
    dataclass = getattr(model, "__dataclass", None)
    fields = {} if dataclass is None else vars(dataclass())
    taken = {name for name, value in fields.items() if str(value).startswith("${")}
    return {name: value for name, value in fields.items() if name not in taken}


def options(name: str) -> str:
    """Return the options of everything of ours that is registered as `name`, as help text.

    fairseq-train --help shows none of them: it prints before it looks at --task and --arch.
    Raises UsageError for a name that is not ours.
    """
    from fairseq.models import ARCH_CONFIG_REGISTRY

    texts: List[str] = []
    names: List[str] = []
    for kind, registry in registries().items():
        names += [entry for entry, registered in registry.items() if system_of(registered)]
        if name not in registry or system_of(registry[name]) is None:
            continue
        parser = argparse.ArgumentParser(
            add_help=False, usage=argparse.SUPPRESS, formatter_class=DefaultsInHelp
        )
        if hasattr(registry[name], "add_args"):  # scorers and coders need not have options
            registry[name].add_args(parser)
        preset = argparse.Namespace()
        if kind == "architectures":
            ARCH_CONFIG_REGISTRY[name](preset)  # an architecture fills what it finds empty
            parser.set_defaults(**{**model_defaults(registry[name]), **vars(preset)})
        texts.append(f"{kind[:-1]} {name}: {summary(registry[name])}\n{parser.format_help()}")
        # as they are typed: a switch that is off, and an option without a value, are left out
        flags = [
            option_of(key, value)
            for key, value in vars(preset).items()
            if value is not None and value is not False
        ]
        texts += [f"preset by {name}: {' '.join(flags)}"] if flags else []
    if not texts:
        raise UsageError(f"NAME {name!r} is unknown; allowed: {', '.join(sorted(names))}")
    return "\n".join(texts)


def list_registered(args: argparse.Namespace) -> int:
    """Print the catalogue, or the options of one entry."""
    if args.name:
        if args.json:
            raise UsageError(f"--json lists everything; it does not go with NAME {args.name!r}")
        print(options(args.name))
        return 0
    systems = catalogue()
    print(json.dumps(systems, indent=2) if args.json else "\n".join(lines(systems)))
    return 0
