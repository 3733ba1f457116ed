"""`fairseq-ext list`: what this package registers with fairseq, by system."""

import json

KINDS = ("architectures", "tasks", "criterions")


def add_arguments(parser):
    parser.add_argument("--json", action="store_true", help="machine-readable output")


def system_of(registered):
    """The system (`dual`, `streams`, ...) that defines a class, or None when it is not ours."""
    package, _, rest = registered.__module__.partition(".")
    return rest.partition(".")[0] if package == __name__.partition(".")[0] else None


def summary(registered):
    """First sentence of a class's own docstring, on one line; empty without one."""
    text = " ".join((registered.__dict__.get("__doc__") or "").split())
    return text.partition(". ")[0].rstrip(".")


def catalogue():
    """{system: {kind: [{name, model, summary}]}}, everything sorted by name.

    `model` is, for architectures only, the registered model whose options they preset. Imports
    fairseq; the caller has imported this package, which registers everything.
    """
    from fairseq.criterions import CRITERION_REGISTRY
    from fairseq.models import ARCH_MODEL_NAME_REGISTRY, ARCH_MODEL_REGISTRY
    from fairseq.tasks import TASK_REGISTRY

    registries = dict(zip(KINDS, (ARCH_MODEL_REGISTRY, TASK_REGISTRY, CRITERION_REGISTRY)))
    systems = {}
    for kind, registry in registries.items():
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


def run(args):
    """Print the catalogue."""
    systems = catalogue()
    print(json.dumps(systems, indent=2) if args.json else "\n".join(lines(systems)))
    return 0
