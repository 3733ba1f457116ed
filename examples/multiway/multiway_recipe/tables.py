"""Tables of what was run: systems that were not are left out, and named."""

import statistics

from recipe_tools.tables import BOOTSTRAP, SIGNIFICANT, cell, rows, signature_list, spread

SHOWN = {"bleu": "BLEU", "chrf": "chrF", "likelihood": "log-likelihood"}
NOTHING = "-"


def values_of(results, place, split, metric):
    """The values of one cell over the seeds that were run, or None.

    results: {(system, seed): content of scores.json}. place: (system, key of its scores).
    """
    system, key = place
    found = [
        result["scores"][split][key][metric]
        for (name, _), result in sorted(results.items())
        if name == system and metric in result["scores"][split].get(key, {})
    ]
    return spread(found) if found else None


def headings(comparison, results):
    """The columns for which something was run."""
    run = {system for system, _ in results}
    names = dict.fromkeys(name for row in comparison.rows for name in row.cells)
    return [
        name
        for name in names
        if any(row.cells[name][0] in run for row in comparison.rows if name in row.cells)
    ]


def shown_rows(comparison, results):
    """The lines for which something was run."""
    run = {system for system, _ in results}
    return [row for row in comparison.rows if any(name in run for name, _ in row.cells.values())]


def summary(comparison, results):
    """[{row, column, split, metric, mean, min, max}] of one comparison."""
    found = []
    for row in comparison.rows:
        for column, place in row.cells.items():
            for split in ("valid", "test"):
                for metric in SHOWN:
                    values = values_of(results, place, split, metric)
                    if values:
                        where = {"row": row.label, "column": column, "split": split}
                        found.append({**where, "metric": metric, **values})
    return found


def score_table(settings, comparison, results, metric):
    """One metric of both sets, `validation / test`; None where nothing was run."""
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
    """Mean difference of BLEU over the seeds, and the p-value of each."""
    if not tests:
        return NOTHING
    difference = statistics.fmean(test["bleu"]["difference"] for test in tests)
    return f"{difference:+.2f} (p {', '.join(format(test['bleu']['p'], '.3f') for test in tests)})"


def contrast_table(settings, comparison, tests):
    """Differences of BLEU on the test set, and how often they are significant.

    tests: {(row label, contrast): [what `scores.compare` found, by seed]}. None where nothing
    was run.
    """
    contrasts = [one for one in comparison.contrasts if any(key[1] == one for key in tests)]
    if not contrasts:
        return None
    labels = dict.fromkeys(row.label for row in comparison.rows)
    body = [
        [label, *(contrast_cell(tests.get((label, one))) for one in contrasts)]
        for label in labels
        if any((label, one) in tests for one in contrasts)
    ]
    names = [f"{system} - {baseline}" for baseline, system in contrasts]
    lines = []
    for name, one in zip(names, contrasts):
        found = [test["bleu"] for key, many in tests.items() if key[1] == one for test in many]
        sure = [test for test in found if test["p"] < SIGNIFICANT]
        higher = sum(test["difference"] > 0 for test in sure)
        lines.append(
            f"- {name}: significantly higher in {higher}, lower in {len(sure) - higher} of "
            f"{len(found)} (p < {SIGNIFICANT})"
        )
    text = rows(["", *names], body)
    title = f"Differences of BLEU, {settings.files['test']}:"
    return "\n\n".join([title, text, "\n".join(lines)])


def cost_table(results):
    """Parameters and time of every system that was run."""
    body = []
    for name in dict.fromkeys(system for system, _ in results):
        found = [result for (system, _), result in results.items() if system == name]
        seconds = statistics.median(result["seconds_per_update"] for result in found)
        parameters, updates = found[0]["parameters"], found[0]["updates"]
        numbers = (f"{parameters['unique']:,}", f"{parameters['used']:,}", f"{updates:,}")
        body.append([name, *numbers, f"{1000 * seconds:.0f}"])
    return rows(["system", "parameters", "used", "updates", "ms per update"], body)


def markdown(settings, seeds, compared, results, signatures):
    """The whole report. compared: [(Comparison, its tests)]."""
    blocks = [
        f"Recipe `{settings.name}` of `examples/multiway`; seeds {', '.join(map(str, seeds))}; "
        f"mean (range) over seeds; the checkpoint with the best validation BLEU; "
        f"`{' '.join(settings.options['evaluate'])}`. Log-likelihood: of the references, natural "
        "logarithm, mean per sentence.",
    ]
    for comparison, tests in compared:
        found = [score_table(settings, comparison, results, metric) for metric in SHOWN]
        found.append(contrast_table(settings, comparison, tests))
        if any(found):
            blocks += [f"**{comparison.title}**", *filter(None, found)]
    blocks += [cost_table(results), BOOTSTRAP, signature_list(signatures)]
    return "\n\n".join(blocks) + "\n"


def missing_runs(compared, results, seeds):
    """Systems of the comparisons, by seed, that were not evaluated."""
    wanted = dict.fromkeys(
        (system, seed)
        for comparison, _ in compared
        for row in comparison.rows
        for system, _ in row.cells.values()
        for seed in seeds
    )
    return [f"{system}.{seed}" for system, seed in wanted if (system, seed) not in results]
