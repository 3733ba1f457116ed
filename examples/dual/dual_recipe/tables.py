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
    """The systems of both directions, the dual model first."""
    return list(dict.fromkeys(system for system, _ in results if not system.startswith("stock.")))


def summary(settings, results):
    """{split: {direction: {"stock", "dual" ...: {metric: spread}}}}.

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
                            found["scores"][split][direction][metric]
                            for (name, _), found in results.items()
                            if name == system
                        ]
                    )
                    for metric in METRICS
                }
                for label, system in systems.items()
            }
    return table


def costs(settings, results):
    """{system: parameters, seconds per epoch}; "stock" is the sum of its two models."""
    table = {}
    for system in dict.fromkeys(system for system, _ in results):
        runs = [found for (name, _), found in results.items() if name == system]
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
    """BLEU and chrF of one split: each system, difference of the means of dual and stock."""
    columns = [(direction, metric) for direction in settings.directions for metric in METRICS]
    header = [settings.files[split], *(f"{each} {METRICS[metric]}" for each, metric in columns)]
    body = []
    for label in (label for label in NAMES if label in table[split][settings.directions[0]]):
        cells = [cell(table[split][each][label][metric]) for each, metric in columns]
        body.append([NAMES[label], *cells])
    gains = [
        table[split][each]["dual"][metric]["mean"] - table[split][each]["stock"][metric]["mean"]
        for each, metric in columns
    ]
    body.append(["dual model - stock", *(f"{gain:+.2f}" for gain in gains)])
    return rows(header, body)


def cost_table(settings, table):
    """Parameters and time of each model, and of the two stock models together."""
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
    """One line per split, direction and seed: differences of a system and p-values."""
    body, wins = [], 0
    own = {tuple(rest): found for (name, *rest), found in tests.items() if name == system}
    for (split, direction, seed), values in own.items():
        cells = []
        for metric in ("bleu", "chrf"):
            cells += [f"{values[metric]['difference']:+.2f}", f"{values[metric]['p']:.4f}"]
        body.append([f"{settings.files[split]} {direction}, seed {seed}", *cells])
        wins += values["bleu"]["difference"] > 0 and values["bleu"]["p"] < SIGNIFICANT
    text = rows([f"{system} - stock", "BLEU", "p", "chrF", "p"], body)
    return f"{text}\n\nHigher BLEU with p < {SIGNIFICANT}: {wins} of {len(own)}."


def alpha_line(alphas):
    """What was chosen on the validation set; alphas: {"SYSTEM, seed N": {direction: alpha}}."""
    each = [
        f"{direction} {alpha} ({run})"
        for run, found in alphas.items()
        for direction, alpha in found.items()
    ]
    return [
        f"Dual inference, alpha by BLEU on the validation set, whose rows flatter it: "
        f"{', '.join(each)}."
    ] * bool(each)


def markdown(settings, table, cost, tests, signatures, alphas):
    """The whole report."""
    seeds = sorted({seed for *_, seed in tests})
    compared = dict.fromkeys(system for system, *_ in tests)
    runs = dict.fromkeys((system, seed) for system, _, _, seed in tests)
    blocks = [
        f"Recipe `{settings.name}`; {seeds_text(seeds, runs, NAMES)}; mean (range) over seeds; "
        f"mean of the last {settings.average} checkpoints by {settings.average_by}; "
        f"`{' '.join(settings.evaluate_options)}`.",
        *(score_table(settings, table, split) for split in ("valid", "test")),
        *alpha_line(alphas),
        cost_table(settings, cost),
        "Seconds per epoch: median of the time in updates. An epoch of a stock model trains one "
        "direction; all others train both.",
        BOOTSTRAP,
        *(significance_table(settings, system, tests) for system in compared),
        signature_list(signatures),
    ]
    return "\n\n".join(blocks) + "\n"
