"""Which trainings the runs of a system are made of."""

from collections.abc import Iterable, Mapping

from .definition import System


def trainings_of(systems: Mapping[str, System], name: str) -> set[str]:
    """Return the systems whose trainings a system translates with: itself, or those it needs."""
    system = systems[name]
    if system.train or not system.needs:
        return {name}
    return {training for need in system.needs for training in trainings_of(systems, need)}


def without_shared_trainings(systems: Mapping[str, System], labels: Iterable[str]) -> list[str]:
    """Return labels of systems of which no two share a training; those that train come first.

    Dual inference with a model and an ensemble of its seeds vary with the seeds as the model does:
    counted as systems of their own, they would tell the same once more.
    """
    names: dict[str, list[str]] = {label: [] for label in labels}
    for name, system in systems.items():
        if system.label in names:
            names[system.label].append(name)
    ordered = sorted(names, key=lambda label: not any(systems[name].train for name in names[label]))
    counted: set[str] = set()
    chosen = []
    for label in ordered:
        trainings = {training for name in names[label] for training in trainings_of(systems, name)}
        if not trainings & counted:
            chosen.append(label)
            counted |= trainings
    return chosen
