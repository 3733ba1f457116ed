"""Tables of what was run: systems that were not are left out, and named."""

import statistics

from recipe_tools.tables import BOOTSTRAP, SIGNIFICANT, cell, rows, signature_list, spread

SHOWN = {"bleu": "BLEU", "chrf": "chrF", "likelihood": "log-likelihood"}
NOTHING = "-"


def values_of(results, place, split, metric):
    """Return the values of one cell over the seeds that were run, or None.

    results: {(system, seed): content of scores.json}. place: (system, key of its scores).
    """
    system, key = place
    values = [
        result["scores"][split][key][metric]
        for (name, _), result in sorted(results.items())
        if name == system and metric in result["scores"][split].get(key, {})
    ]
    return spread(values) if values else None


def headings(comparison, results):
    """Return the columns for which something was run."""
    run = {system for system, _ in results}
    names = dict.fromkeys(name for row in comparison.rows for name in row.cells)
    return [
        name
        for name in names
        if any(row.cells[name][0] in run for row in comparison.rows if name in row.cells)
    ]


def shown_rows(comparison, results):
    """Return the lines for which something was run."""
    run = {system for system, _ in results}
    return [row for row in comparison.rows if any(name in run for name, _ in row.cells.values())]


def summary(comparison, results):
    """Return [{row, column, split, metric, mean, min, max}] of one comparison."""
    lines = []
    for row in comparison.rows:
        for column, place in row.cells.items():
            for split in ("valid", "test"):
                for metric in SHOWN:
                    values = values_of(results, place, split, metric)
                    if values:
                        where = {"row": row.label, "column": column, "split": split}
                        lines.append({**where, "metric": metric, **values})
    return lines


def score_table(settings, comparison, results, metric):
    """Return one metric of both sets, `validation / test`, or None if nothing was run."""
    columns, body = headings(comparison, results), []
    for row in shown_rows(comparison, results):
        cells = []
        for column in columns:
            both = [
                values_of(results, row.cells[column], split, metric) for split in ("valid", "test")
            ]
            cells.append(" / ".join(map(cell, both)) if all(both) else NOTHING)
        body.append([row.label, *cells])
    if not any(value != NOTHING for line in body for value in line[1:]):
        return None
    sets = f"{settings.files['valid']} / {settings.files['test']}"
    return f"{SHOWN[metric]}, {sets}:\n\n" + rows(["", *columns], body)


def contrast_cell(tests):
    """Return the mean difference of BLEU over the seeds, and the p-value of each."""
    if not tests:
        return NOTHING
    difference = statistics.fmean(test["bleu"]["difference"] for test in tests)
    return f"{difference:+.2f} (p {', '.join(format(test['bleu']['p'], '.3f') for test in tests)})"


def contrast_table(settings, comparison, tests):
    """Return differences of BLEU on the test set, and how often they are significant.

    tests: {(row label, contrast): [what `scores.compare` found, by seed]}. None where nothing
    was run.
    """
    contrasts = [
        contrast for contrast in comparison.contrasts if any(key[1] == contrast for key in tests)
    ]
    if not contrasts:
        return None
    labels = dict.fromkeys(row.label for row in comparison.rows)
    body = [
        [label, *(contrast_cell(tests.get((label, contrast))) for contrast in contrasts)]
        for label in labels
        if any((label, contrast) in tests for contrast in contrasts)
    ]
    names = [f"{system} - {baseline}" for baseline, system in contrasts]
    lines = []
    for name, contrast in zip(names, contrasts):
        bleu_tests = [
            test["bleu"] for key, many in tests.items() if key[1] == contrast for test in many
        ]
        sure = [test for test in bleu_tests if test["p"] < SIGNIFICANT]
        higher = sum(test["difference"] > 0 for test in sure)
        lines.append(
            f"- {name}: significantly higher in {higher}, lower in {len(sure) - higher} of "
            f"{len(bleu_tests)} comparisons (p < {SIGNIFICANT})"
        )
    text = rows(["", *names], body)
    title = f"Differences of BLEU, {settings.files['test']}:"
    return "\n\n".join([title, text, "\n".join(lines)])


def cost_table(results):
    """Return parameters and time of every system that was run."""
    body = []
    for name in dict.fromkeys(system for system, _ in results):
        runs = [result for (system, _), result in results.items() if system == name]
        seconds = statistics.median(result["seconds_per_update"] for result in runs)
        parameters, updates = runs[0]["parameters"], runs[0]["updates"]
        numbers = (f"{parameters['unique']:,}", f"{parameters['used']:,}", f"{updates:,}")
        body.append([name, *numbers, f"{1000 * seconds:.0f}"])
    return rows(["system", "parameters", "used", "updates", "ms per update"], body)


def markdown(settings, seeds, compared, results, signatures):
    """Return the whole report. compared: [(Comparison, its tests)]."""
    blocks = [
        f"Recipe `{settings.name}` of `examples/multiway`; seeds {', '.join(map(str, seeds))}; "
        "mean (range) over seeds; the last table lists the updates. Scores are of the checkpoint "
        "with the best validation BLEU, which translates with "
        f"`{' '.join(settings.options['evaluate'])}`. The log-likelihood is that of the "
        "references: natural logarithm, mean per sentence. Higher values are better.",
    ]
    for comparison, tests in compared:
        tables = [score_table(settings, comparison, results, metric) for metric in SHOWN]
        tables.append(contrast_table(settings, comparison, tests))
        if any(tables):
            blocks += [f"**{comparison.title}**", *filter(None, tables)]
    blocks += [cost_table(results), BOOTSTRAP, signature_list(signatures)]
    return "\n\n".join(blocks) + "\n"


def missing_runs(compared, results, seeds):
    """Return the systems of the comparisons, by seed, that were not evaluated."""
    runs = dict.fromkeys(
        (system, seed)
        for comparison, _ in compared
        for row in comparison.rows
        for system, _ in row.cells.values()
        for seed in seeds
    )
    return [f"{system}.{seed}" for system, seed in runs if (system, seed) not in results]
