"""Results of several seeds as JSON-ready data and as Markdown tables."""

import statistics

from recipe_tools.scores import METRICS
from recipe_tools.tables import (
    BOOTSTRAP,
    SIGNIFICANT,
    cell,
    rows,
    seeds_text,
    signature_list,
    spread,
)

NAMES = {
    "stock": "two stock transformers",
    "separate.inference": "two stock transformers, dual inference",
    "dsl": "two stock transformers, DSL",
    "dual": "dual model",
    "dual.dsl": "dual model, DSL",
    "dual.inference": "dual model, dual inference",
}


def both_ways(results):
    """Return the systems of both directions, the dual model first."""
    return list(dict.fromkeys(system for system, _ in results if not system.startswith("stock.")))


def summary(settings, results):
    """Return {split: {direction: {"stock", "dual" ...: {metric: spread}}}}.

    results: {(system, seed): content of scores.json}.
    """
    table = {}
    for split in ("valid", "test"):
        table[split] = {}
        for direction in settings.directions:
            systems = {"stock": f"stock.{direction}"}
            systems.update({system: system for system in both_ways(results)})
            table[split][direction] = {
                label: {
                    metric: spread(
                        [
                            result["scores"][split][direction][metric]
                            for (name, _), result in results.items()
                            if name == system
                        ]
                    )
                    for metric in METRICS
                }
                for label, system in systems.items()
            }
    return table


def costs(settings, results):
    """Return {system: parameters and seconds per epoch}; "stock" is the sum of its two models."""
    table = {}
    for system in dict.fromkeys(system for system, _ in results):
        runs = [result for (name, _), result in results.items() if name == system]
        table[system] = {
            **runs[0]["parameters"],
            "seconds_per_epoch": statistics.median(run["seconds_per_epoch"] for run in runs),
            "epochs": runs[0]["epochs"],
        }
    parts = [table[system] for system in settings.systems[1:]]
    table["stock"] = {
        name: sum(part[name] for part in parts) for name in ("unique", "used", "seconds_per_epoch")
    }
    return table


def score_table(settings, table, split):
    """Return BLEU and chrF of one split: each system, and the mean difference of dual and stock."""
    columns = [(direction, metric) for direction in settings.directions for metric in METRICS]
    header = [
        settings.files[split],
        *(f"{direction} {METRICS[metric]}" for direction, metric in columns),
    ]
    body = []
    for label in (label for label in NAMES if label in table[split][settings.directions[0]]):
        cells = [cell(table[split][direction][label][metric]) for direction, metric in columns]
        body.append([NAMES[label], *cells])
    gains = [
        table[split][direction]["dual"][metric]["mean"]
        - table[split][direction]["stock"][metric]["mean"]
        for direction, metric in columns
    ]
    body.append(["dual model - stock", *(f"{gain:+.2f}" for gain in gains)])
    return rows(header, body)


def cost_table(settings, table):
    """Return parameters and time of each model, and of the two stock models together."""
    body, trained = [], [system for system in ("dual", "dsl", "dual.dsl") if system in table]
    for system in (*settings.systems[1:], "stock", *trained):
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


def significance_table(settings, system, tests):
    """Return a line per split, direction and seed: differences of a system and p-values."""
    body, wins = [], 0
    tests_of_system = {
        tuple(rest): differences for (name, *rest), differences in tests.items() if name == system
    }
    for (split, direction, seed), values in tests_of_system.items():
        cells = []
        for metric in ("bleu", "chrf"):
            cells += [f"{values[metric]['difference']:+.2f}", f"{values[metric]['p']:.4f}"]
        body.append([f"{settings.files[split]} {direction}, seed {seed}", *cells])
        wins += values["bleu"]["difference"] > 0 and values["bleu"]["p"] < SIGNIFICANT
    text = rows([f"{system} - stock", "BLEU", "p", "chrF", "p"], body)
    return f"{text}\n\nHigher BLEU with p < {SIGNIFICANT}: {wins} of {len(tests_of_system)}."


def alpha_line(alphas):
    """Return the chosen values; alphas: {"SYSTEM, seed N": {direction: alpha}}."""
    choices = [
        f"{direction} {alpha} ({run})"
        for run, by_direction in alphas.items()
        for direction, alpha in by_direction.items()
    ]
    return [
        "Alpha was tuned on the validation set, so validation scores are optimistic. Values with "
        f"the best BLEU: {', '.join(choices)}."
    ] * bool(choices)


def markdown(settings, table, cost, tests, signatures, alphas):
    """Return the whole report."""
    seeds = sorted({seed for *_, seed in tests})
    compared = dict.fromkeys(system for system, *_ in tests)
    runs = dict.fromkeys((system, seed) for system, _, _, seed in tests)
    blocks = [
        f"Recipe `{settings.name}`, {cost['dual']['epochs']} epochs of training; "
        f"{seeds_text(seeds, runs, NAMES)}; mean (range) over seeds. The scored model is the "
        f"average of the last {settings.average} checkpoints, counted by {settings.average_by}; it "
        f"translates with `{' '.join(settings.evaluate_options)}`. Higher scores are better.",
        *(score_table(settings, table, split) for split in ("valid", "test")),
        *alpha_line(alphas),
        cost_table(settings, cost),
        "The seconds per epoch are the median over epochs of the time spent in updates. A stock "
        "model trains one direction in an epoch; all other models train both.",
        BOOTSTRAP,
        *(significance_table(settings, system, tests) for system in compared),
        signature_list(signatures),
    ]
    return "\n\n".join(blocks) + "\n"
