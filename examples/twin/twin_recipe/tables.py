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
    BOOTSTRAP.replace("with the same seed", "over all seeds")
    + " The p-value reflects variation across sentences, not seeds; the range shows seed variation."
)


def by_system(results):
    """Return {system: [its results, by seed]} in the order of Table 1."""
    by_name = {}
    for name in SYSTEMS:
        many = [result for (system, _), result in sorted(results.items()) if system == name]
        if many:
            by_name[name] = many
    return by_name


def score_table(metrics, results):
    """Return a line for each system, with each metric on the test and the validation set."""
    header, body = ["system"], []
    for metric in metrics:
        header += [f"test {metric.title}", f"valid {metric.title}"]
    for name, many in by_system(results).items():
        cells = []
        for metric in metrics:
            for split in ("test", "valid"):
                cells.append(cell(spread([run["scores"][split][metric.name] for run in many])))
        body.append([TITLES[name], *cells])
    return rows(header, body)


def test_table(metrics, tests):
    """Return the table of tests: {(system, compared system, metric name): result of `compare`}."""
    if not tests:
        return None
    header, body = ["difference at equal seeds, test"], []
    for metric in metrics:
        header += [metric.title, "p"]
    for system, other in dict.fromkeys((system_name, other) for system_name, other, _ in tests):
        cells = []
        for metric in metrics:
            test = tests[system, other, metric.name]
            cells += [cell(spread(test["by_seed"])), f"{test['p']:.3f}"]
        body.append([f"{TITLES[system]} minus {TITLES[other]}", *cells])
    return rows(header, body)


def cost_table(results):
    """Return parameters and time; the baseline's time is one."""
    runs_by_system, body = by_system(results), []
    # 0: epochs too short for the seconds in the log
    best = {
        name: min(run["seconds_per_update"] for run in many)
        for name, many in runs_by_system.items()
    }
    for name, many in runs_by_system.items():
        counts = many[0]["parameters"]
        timed = best[name] and best.get("baseline")
        ratio = f"{best[name] / best['baseline']:.2f}" if timed else "-"
        numbers = [f"{counts[part]:,}" for part in ("model", "criterion")]
        updates = f"{many[0]['updates']:,}"
        milliseconds = f"{1000 * best[name]:.0f}" if best[name] else "-"
        body.append([TITLES[name], *numbers, updates, milliseconds, ratio])
    header = ["system", "parameters", "only in training", "updates", "ms per update"]
    header.append("time / baseline")
    return rows(header, body)


def markdown(settings, seeds, results, tests):
    """Return the whole report."""
    metrics = settings.kind.METRICS
    searched = any(metric.source == "hyp" for metric in metrics)
    search = f", decoded with `{' '.join(settings.words['evaluate'])}`" if searched else ""
    blocks = [
        f"Recipe `{settings.name}` of `examples/twin`, {settings.updates:,} updates; "
        f"{seeds_text(seeds, results, TITLES)}; mean (range) over seeds. Scores are of the "
        f"{settings.checkpoint} checkpoint{search}.",
        score_table(metrics, results),
        test_table(metrics, tests),
        cost_table(results),
        PAIRED if tests else None,
    ]
    return "\n\n".join(filter(None, blocks)) + "\n"
