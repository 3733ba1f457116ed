"""Tables of what was run; systems that were not are left out."""

import statistics

from recipe_tools.scores import METRICS
from recipe_tools.tables import BOOTSTRAP, SIGNIFICANT, cell, rows, signature_list, spread

from .settings import LONG, ROWS

NOTHING = "-"
SCORED = ("valid", "test")


def of_system(results, name):
    """The results of a system, by seed."""
    return [result for (system, _), result in sorted(results.items()) if system == name]


def score_table(settings, results, direction):
    """One line for each row of Table 6; None where nothing was run."""
    body = []
    for row, (title, paper) in ROWS.items():
        found = of_system(results, f"{row}.{direction}")
        if not found:
            continue
        values = [
            [one["scores"][split][metric] for one in found]
            for split in SCORED
            for metric in METRICS
        ]
        values.append([one["perplexity"] for one in found])
        seconds = statistics.median(one["seconds_per_update"] for one in found)
        cost = [f"{found[0]['parameters']['used']:,}", f"{1000 * seconds:.0f}"]
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
    """[(baseline, row)]: each row against the one above it and against the first one."""
    names = [row for row in ROWS if row not in LONG]
    both = [*zip(names, names[1:]), *((names[0], one) for one in names[1:]), tuple(LONG)]
    return list(dict.fromkeys(both))


def contrast_table(tests):
    """tests: {(direction, baseline, row): [what `scores.compare` found, by seed]}."""
    body, sure = [], 0
    for (direction, baseline, row), found in tests.items():
        bleu = [test["bleu"] for test in found]
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
    """The whole report."""
    blocks = [
        f"Recipe `{settings.name}` of `examples/duo_translation`; seeds "
        f"{', '.join(map(str, seeds))}; mean (range) over seeds; the checkpoint after "
        f"{settings.updates:,} updates ({settings.updates_of(next(iter(LONG))):,} of the longer "
        f"ones); `{' '.join(settings.words['evaluate'])}`. Perplexity per "
        "subword. The last column is the paper's BLEU on WMT14 En-De.",
        *(score_table(settings, results, direction) for direction in settings.directions),
        contrast_table(tests),
        BOOTSTRAP,
        signature_list(signatures),
    ]
    return "\n\n".join(filter(None, blocks)) + "\n"


def curve_table(curves):
    """Markdown of {direction: {row: {metric: [(epoch, mean)]}}}: BLEU / perplexity by epoch."""
    blocks = []
    for direction, by_row in curves.items():
        epochs = sorted({epoch for found in by_row.values() for epoch, _ in found["bleu"]})
        body = [[f"{epoch:.1f}"] for epoch in epochs]
        for found in by_row.values():
            both = dict(found["bleu"]), dict(found["ppl"])
            for line, epoch in zip(body, epochs):
                pair = [one.get(epoch) for one in both]
                line.append(NOTHING if None in pair else f"{pair[0]:.1f} / {pair[1]:.2f}")
        blocks.append(rows([f"epoch, {direction}", *(ROWS[row][0] for row in by_row)], body))
    title = "Validation BLEU, greedy / perplexity, means over the seeds:"
    return "\n\n".join([title, *blocks]) + "\n"
