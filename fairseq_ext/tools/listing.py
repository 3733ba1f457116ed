"""`fairseq-ext list`: what this package registers with fairseq, by system."""

import argparse
import json

from . import UsageError

KINDS = ("architectures", "tasks", "criterions")


def add_arguments(parser):
    parser.add_argument("name", nargs="?", metavar="NAME", help="show the options of this one")
    parser.add_argument("--json", action="store_true", help="machine-readable output")


def system_of(registered):
    """The system (`dual`, `streams`, ...) that defines a class, or None when it is not ours."""
    package, _, rest = registered.__module__.partition(".")
    return rest.partition(".")[0] if package == __name__.partition(".")[0] else None


def summary(registered):
    """First sentence of a class's own docstring, on one line; empty without one."""
    text = " ".join((registered.__dict__.get("__doc__") or "").split())
    return text.partition(". ")[0].rstrip(".")


def registries():
    """{kind: {name: class}}, fairseq's own entries included."""
    from fairseq.criterions import CRITERION_REGISTRY
    from fairseq.models import ARCH_MODEL_REGISTRY
    from fairseq.tasks import TASK_REGISTRY

    return dict(zip(KINDS, (ARCH_MODEL_REGISTRY, TASK_REGISTRY, CRITERION_REGISTRY)))


def catalogue():
    """{system: {kind: [{name, model, summary}]}}, everything sorted by name.

    `model` is, for architectures only, the registered model whose options they preset. Imports
    fairseq; the caller has imported this package, which registers everything.
    """
    from fairseq.models import ARCH_MODEL_NAME_REGISTRY

    systems = {}
    for kind, registry in registries().items():
        for name, registered in sorted(registry.items()):
            system = system_of(registered)
            if system is None:
                continue
            entry = {"name": name, "summary": summary(registered)}
            if kind == "architectures":
                entry["model"] = ARCH_MODEL_NAME_REGISTRY[name]
            systems.setdefault(system, {k: [] for k in KINDS})[kind].append(entry)
    return dict(sorted(systems.items()))


def lines(systems):
    """The catalogue as text, one entry a line."""
    for system, kinds in systems.items():
        yield system
        for kind in KINDS:
            for entry in kinds[kind]:
                model = entry.get("model", entry["name"])
                note = entry["summary"] if model == entry["name"] else f"sizes for {model}"
                yield f"  {kind[:-1]:<12}  {entry['name']:<36}  {note}".rstrip()


def options(name):
    """The options of everything of ours that is registered as `name`, as help text.

    fairseq-train --help shows none of them: it prints before it looks at --task and --arch.
    Raises UsageError for a name that is not ours.
    """
    from fairseq.models import ARCH_CONFIG_REGISTRY

    texts, known = [], []
    for kind, registry in registries().items():
        known += [each for each, registered in registry.items() if system_of(registered)]
        if name not in registry or system_of(registry[name]) is None:
            continue
        style = argparse.ArgumentDefaultsHelpFormatter
        parser = argparse.ArgumentParser(
            add_help=False, usage=argparse.SUPPRESS, formatter_class=style
        )
        registry[name].add_args(parser)
        texts.append(f"{kind[:-1]} {name}: {summary(registry[name])}\n{parser.format_help()}")
        if kind == "architectures":
            preset = argparse.Namespace()
            ARCH_CONFIG_REGISTRY[name](preset)
            flags = [f"--{key.replace('_', '-')} {value}" for key, value in vars(preset).items()]
            texts += [f"preset by {name}: {' '.join(flags)}"] if flags else []
    if not texts:
        raise UsageError(f"NAME {name!r} is unknown; allowed: {', '.join(sorted(known))}")
    return "\n".join(texts)


def run(args):
    """Print the catalogue, or the options of one entry."""
    if args.name:
        if args.json:
            raise UsageError(f"--json lists everything; it does not go with NAME {args.name!r}")
        print(options(args.name))
        return 0
    systems = catalogue()
    print(json.dumps(systems, indent=2) if args.json else "\n".join(lines(systems)))
    return 0
