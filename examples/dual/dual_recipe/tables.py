"""Results of several seeds as JSON-ready data and as Markdown tables."""

import statistics

from recipe_tools.scores import METRICS
from recipe_tools.tables import BOOTSTRAP, SIGNIFICANT, cell, rows, signature_list, spread


def summary(settings, results):
    """{split: {direction: {"stock", "dual": {metric: spread}}}}.

    results: {(system, seed): content of scores.json}.
    """
    seeds = sorted({seed for _, seed in results})
    table = {}
    for split in ("valid", "test"):
        table[split] = {}
        for direction in settings.directions:
            systems = {"stock": f"stock.{direction}", "dual": "dual"}
            table[split][direction] = {
                label: {
                    metric: spread(
                        [
                            results[system, seed]["scores"][split][direction][metric]
                            for seed in seeds
                        ]
                    )
                    for metric in METRICS
                }
                for label, system in systems.items()
            }
    return table


def costs(settings, results):
    """{system: parameters, seconds per epoch}; "stock" is the sum of its two models."""
    seeds = sorted({seed for _, seed in results})
    table = {}
    for system in settings.systems:
        first = results[system, seeds[0]]
        seconds = [results[system, seed]["seconds_per_epoch"] for seed in seeds]
        table[system] = {
            **first["parameters"],
            "seconds_per_epoch": statistics.median(seconds),
            "epochs": first["epochs"],
        }
    parts = [table[system] for system in settings.systems if system != "dual"]
    table["stock"] = {
        name: sum(part[name] for part in parts) for name in ("unique", "used", "seconds_per_epoch")
    }
    return table


def score_table(settings, table, split):
    """BLEU and chrF of one split: stock, dual, difference of the means."""
    columns = [(direction, metric) for direction in settings.directions for metric in METRICS]
    header = [settings.files[split], *(f"{each} {METRICS[metric]}" for each, metric in columns)]
    body = []
    names = {"stock": "two stock transformers", "dual": "dual model"}
    for label, name in names.items():
        cells = [cell(table[split][each][label][metric]) for each, metric in columns]
        body.append([name, *cells])
    gains = [
        table[split][each]["dual"][metric]["mean"] - table[split][each]["stock"][metric]["mean"]
        for each, metric in columns
    ]
    body.append(["difference", *(f"{gain:+.2f}" for gain in gains)])
    return rows(header, body)


def cost_table(settings, table):
    """Parameters and time of each model, and of the two stock models together."""
    stocks = [system for system in settings.systems if system != "dual"]
    body = []
    for system in (*stocks, "stock", "dual"):
        values = table[system]
        name = "both stock models" if system == "stock" else system
        body.append(
            [
                name,
                f"{values['unique']:,}",
                f"{values['used']:,}",
                f"{values['seconds_per_epoch']:.0f}",
            ]
        )
    share = table["dual"]["used"] / table["stock"]["used"]
    text = rows(["model", "unique parameters", "used", "seconds per epoch"], body)
    return f"{text}\n\nThe dual model uses {share:.0%} of the parameters of the two stock models."


def significance_table(settings, tests):
    """One line per split, direction and seed: differences and p-values."""
    body, wins = [], 0
    for (split, direction, seed), values in tests.items():
        cells = []
        for metric in ("bleu", "chrf"):
            cells += [f"{values[metric]['difference']:+.2f}", f"{values[metric]['p']:.4f}"]
        body.append([f"{settings.files[split]} {direction}, seed {seed}", *cells])
        wins += values["bleu"]["difference"] > 0 and values["bleu"]["p"] < SIGNIFICANT
    text = rows(["dual - stock", "BLEU", "p", "chrF", "p"], body)
    return f"{text}\n\nHigher BLEU with p < {SIGNIFICANT}: {wins} of {len(tests)}."


def markdown(settings, seeds, table, cost, tests, signatures):
    """The whole report."""
    blocks = [
        f"Recipe `{settings.name}`; seeds {', '.join(map(str, seeds))}; mean (range) over seeds; "
        f"mean of the last {settings.average} checkpoints by {settings.average_by}; "
        f"`{' '.join(settings.evaluate_options)}`.",
        *(score_table(settings, table, split) for split in ("valid", "test")),
        cost_table(settings, cost),
        "Seconds per epoch: median of the time in updates. An epoch of the dual model trains both "
        "directions; one of a stock model trains one.",
        BOOTSTRAP,
        significance_table(settings, tests),
        signature_list(signatures),
    ]
    return "\n\n".join(blocks) + "\n"
