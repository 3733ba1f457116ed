"""Results of several seeds as JSON-ready data and as Markdown tables."""

import statistics

from recipe_tools.tables import SIGNIFICANT, cell, rows, spread

MEASURES = {"error": "error rate", "perplexity": "perplexity"}
# rows: system, measure of its labels; a generator has none
ROWS = {
    "classifier": ("classifier", "error"),
    "classifier + dual inference": ("classifier", "dual_error"),
    "generator": ("generator", "error"),
    "dsl": ("dsl", "error"),
    "dsl + dual inference": ("dsl", "dual_error"),
    "dual": ("dual", "error"),
    "dual + dual inference": ("dual", "dual_error"),
    "dual.dsl": ("dual.dsl", "error"),
    "dual.dsl + dual inference": ("dual.dsl", "dual_error"),
}


def summary(results):
    """Return {row: {measure: {split: spread}}}; results: {(system, seed): scores.json}."""
    table = {}
    for row, (system, labels) in ROWS.items():
        every = [result["scores"] for (name, _), result in results.items() if name == system]
        if not every:  # a system that was not evaluated
            continue
        table[row] = {}
        for measure, source in (("error", labels), ("perplexity", "perplexity")):
            if source in every[0] and not (labels == "dual_error" and source == "perplexity"):
                table[row][measure] = {
                    split: spread([scores[source][split] for scores in every])
                    for split in ("valid", "test")
                }
    return table


def score_table(table):
    """Return a line for each row: error rate and perplexity on both sets."""
    columns = [(measure, split) for measure in MEASURES for split in ("valid", "test")]
    body = [
        [row, *(cell(values[m][split]) if m in values else "" for m, split in columns)]
        for row, values in table.items()
    ]
    return rows(["", *(f"{MEASURES[m]}, {split}" for m, split in columns)], body)


def cost_table(results):
    """Return parameters, updates of both stages and time of training of each system."""
    body = []
    for name in dict.fromkeys(system for system, _ in results):
        every = [result for (system, _), result in results.items() if system == name]
        updates = ", ".join("+".join(map(str, result["updates"])) for result in every)
        seconds = statistics.median(result["seconds_per_update"] for result in every)
        unique = every[0]["parameters"]["unique"]
        body.append([name, f"{unique:,}", updates, f"{seconds:.2f}"])
    return rows(["system", "parameters", "updates of both stages", "seconds per update"], body)


def significance_table(tests):
    """Return a line for each couple and seed; tests: {(better, worse, seed): (difference, p)}."""
    body = [
        [
            f"{first} - {second}, seed {seed}",
            f"{difference:+.2f}",
            "< 0.0001" if p < 0.0001 else f"{p:.4f}",
        ]
        for (first, second, seed), (difference, p) in tests.items()
    ]
    return rows(["test error", "difference", "p"], body)


def markdown(settings, seeds, table, results, tests):
    """Return the whole report."""
    alphas = {
        name: ", ".join(f"{results[name, seed]['scores']['alpha']:g}" for seed in seeds)
        for name in dict.fromkeys(system for system, _ in results)
        if "alpha" in results[name, seeds[0]]["scores"]
    }
    words = f"the first {settings.words} words" if settings.words else "all words"
    most = " and ".join(f"{stage.updates:,} ({stage.name} stage)" for stage in settings.stages)
    blocks = [
        f"Recipe `{settings.name}`: {words} of each review, a vocabulary of "
        f"{settings.vocabulary:,}, at most {most} updates; seeds {', '.join(map(str, seeds))}; "
        "mean (range) over seeds. The error rate is in percent; lower is better in all columns.",
        score_table(table),
        "Alpha was tuned on the validation set, so validation scores of dual inference are "
        "optimistic. Values of alpha, seed by seed: "
        + "; ".join(f"{name} {text}" for name, text in alphas.items())
        + ".",
        cost_table(results),
        "The p-values come from an exact McNemar test on the labels of the test set; a difference "
        f"with p < {SIGNIFICANT} is significant.",
        significance_table(tests),
    ]
    return "\n\n".join(blocks) + "\n"
