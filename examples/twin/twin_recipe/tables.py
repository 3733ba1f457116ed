"""Tables of what was run; systems that were not are left out."""

from recipe_tools.tables import BOOTSTRAP, cell, rows, seeds_text, spread

from .settings import SYSTEMS

TITLES = {
    "baseline": "baseline",
    "both": "+ backward network, no penalty",
    "noise": "+ Gaussian noise",
    "norm": "+ stabilising norm",
    "zeros": "+ AR",
    "identity": "+ TwinNet, g = identity",
    "learnt": "+ TwinNet, learnt g",
}

PAIRED = (
    BOOTSTRAP.replace("of the same seed", "over all seeds")
    + " p knows of other sentences, not of other seeds: for these see the range."
)


def by_system(results):
    """{system: [its results, by seed]} in the order of Table 1."""
    found = {}
    for name in SYSTEMS:
        many = [result for (system, _), result in sorted(results.items()) if system == name]
        if many:
            found[name] = many
    return found


def score_table(metrics, results):
    """One line for each system; of each metric the test and the validation set."""
    header, body = ["system"], []
    for metric in metrics:
        header += [f"test {metric.title}", f"valid {metric.title}"]
    for name, many in by_system(results).items():
        cells = []
        for metric in metrics:
            for split in ("test", "valid"):
                cells.append(cell(spread([one["scores"][split][metric.name] for one in many])))
        body.append([TITLES[name], *cells])
    return rows(header, body)


def test_table(metrics, tests):
    """tests: {(system, the one it is compared with, metric name): what `scoring.compare` found}."""
    if not tests:
        return None
    header, body = ["difference of the same seeds, test"], []
    for metric in metrics:
        header += [metric.title, "p"]
    for system, other in dict.fromkeys((one, other) for one, other, _ in tests):
        cells = []
        for metric in metrics:
            found = tests[system, other, metric.name]
            cells += [cell(spread(found["by_seed"])), f"{found['p']:.3f}"]
        body.append([f"{TITLES[system]} less {TITLES[other]}", *cells])
    return rows(header, body)


def cost_table(results):
    """Parameters and time; the baseline's time is one."""
    found, body = by_system(results), []
    # 0: epochs too short for the seconds in the log
    best = {name: min(one["seconds_per_update"] for one in many) for name, many in found.items()}
    for name, many in found.items():
        counts = many[0]["parameters"]
        timed = best[name] and best.get("baseline")
        ratio = f"{best[name] / best['baseline']:.2f}" if timed else "-"
        numbers = [f"{counts[part]:,}" for part in ("model", "criterion")]
        updates = f"{many[0]['updates']:,}"
        milliseconds = f"{1000 * best[name]:.0f}" if best[name] else "-"
        body.append([TITLES[name], *numbers, updates, milliseconds, ratio])
    header = ["system", "parameters", "in training also", "updates", "ms per update", "ratio"]
    return rows(header, body)


def markdown(settings, seeds, results, tests):
    """The whole report."""
    metrics = settings.kind.METRICS
    searched = any(metric.source == "hyp" for metric in metrics)
    search = f"; `{' '.join(settings.words['evaluate'])}`" if searched else ""
    blocks = [
        f"Recipe `{settings.name}` of `examples/twin`; {seeds_text(seeds, results, TITLES)}; mean "
        f"(range) over seeds; the {settings.checkpoint} checkpoint{search}.",
        score_table(metrics, results),
        test_table(metrics, tests),
        cost_table(results),
        PAIRED if tests else None,
    ]
    return "\n\n".join(filter(None, blocks)) + "\n"
