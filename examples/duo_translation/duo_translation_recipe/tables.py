"""Tables of what was run; systems that were not are left out."""

import statistics

from recipe_tools.scores import METRICS
from recipe_tools.tables import BOOTSTRAP, SIGNIFICANT, cell, rows, signature_list, spread

from .settings import LONG, ROWS

NOTHING = "-"
SCORED = ("valid", "test")


def of_system(results, name):
    """Return the results of a system, by seed."""
    return [result for (system, _), result in sorted(results.items()) if system == name]


def score_table(settings, results, direction):
    """Return a line for each row of Table 6, or None if nothing was run."""
    body = []
    for row, (title, paper) in ROWS.items():
        runs = of_system(results, f"{row}.{direction}")
        if not runs:
            continue
        values = [
            [run["scores"][split][metric] for run in runs] for split in SCORED for metric in METRICS
        ]
        values.append([run["perplexity"] for run in runs])
        seconds = statistics.median(run["seconds_per_update"] for run in runs)
        cost = [f"{runs[0]['parameters']['used']:,}", f"{1000 * seconds:.0f}"]
        body.append([title, *map(cell, map(spread, values)), *cost, paper])
    if not body:
        return None
    header = [
        f"{settings.files[split]} {name}"
        for split in ("valid", "test")
        for name in METRICS.values()
    ]
    header = [direction, *header, f"{settings.files['valid']} perplexity"]
    return rows([*header, "parameters", "ms per update", "BLEU in Table 6"], body)


def contrasts():
    """Return [(baseline, row)]: each row with the row above it and with the first row."""
    names = [row for row in ROWS if row not in LONG]
    both = [*zip(names, names[1:]), *((names[0], row) for row in names[1:]), tuple(LONG)]
    return list(dict.fromkeys(both))


def contrast_table(tests):
    """Return a table of tests {(direction, baseline, row): [result of `scores.compare`]}."""
    body, sure = [], 0
    for (direction, baseline, row), by_seed in tests.items():
        bleu = [test["bleu"] for test in by_seed]
        sure += sum(test["difference"] > 0 and test["p"] < SIGNIFICANT for test in bleu)
        differences = cell(spread([test["difference"] for test in bleu]))
        values = ", ".join(f"{test['p']:.3f}" for test in bleu)
        body.append([f"{direction}: {row} - {baseline}", differences, values])
    if not body:
        return None
    count = sum(map(len, tests.values()))
    return (
        rows(["difference of BLEU, test set", "mean (range)", "p"], body)
        + f"\n\nHigher with p < {SIGNIFICANT}: {sure} of {count}."
    )


def markdown(settings, seeds, results, tests, signatures):
    """Return the whole report."""
    blocks = [
        f"Recipe `{settings.name}` of `examples/duo_translation`; seeds "
        f"{', '.join(map(str, seeds))}; mean (range) over seeds. The scored checkpoint is the last "
        f"one, after {settings.updates:,} updates ({settings.updates_of(next(iter(LONG))):,} in "
        f"the rows called longer); it translates with `{' '.join(settings.words['evaluate'])}`. "
        "Perplexity is per subword. The last column is the paper's BLEU on WMT14 En-De.",
        *(score_table(settings, results, direction) for direction in settings.directions),
        contrast_table(tests),
        BOOTSTRAP,
        signature_list(signatures),
    ]
    return "\n\n".join(filter(None, blocks)) + "\n"


def curve_table(curves):
    """Return Markdown of {direction: {row: {metric: [(epoch, mean)]}}}, BLEU / perplexity."""
    blocks = []
    for direction, by_row in curves.items():
        epochs = sorted({epoch for by_metric in by_row.values() for epoch, _ in by_metric["bleu"]})
        body = [[f"{epoch:.1f}"] for epoch in epochs]
        for by_metric in by_row.values():
            both = dict(by_metric["bleu"]), dict(by_metric["ppl"])
            for line, epoch in zip(body, epochs):
                pair = [curve.get(epoch) for curve in both]
                line.append(NOTHING if None in pair else f"{pair[0]:.1f} / {pair[1]:.2f}")
        blocks.append(rows([f"epoch, {direction}", *(ROWS[row][0] for row in by_row)], body))
    title = "Validation BLEU of greedy search / validation perplexity by epoch, means over seeds:"
    return "\n\n".join([title, *blocks]) + "\n"
