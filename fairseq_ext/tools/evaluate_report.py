"""Scores of several runs as tables: Markdown and tab-separated values."""

import statistics

SIGNIFICANT = 0.05
EXPLAINED = {
    "bootstrap": "Paired bootstrap of the systems of the same seed, {:,} resamples; sacrebleu's "
    "p-value is one-sided.",
    "randomisation": "Paired approximate randomisation, {:,} trials; two-sided.",
}


def spread(values):
    """Mean and range of a metric over the seeds."""
    return {"mean": statistics.fmean(values), "min": min(values), "max": max(values)}


def cell(values):
    """A spread, `mean (min-max)`, `mean (min to max)` below zero; with one seed only the value."""
    # + 0.0: no "-0.00"
    mean, least, most = (f"{round(values[name], 2) + 0.0:.2f}" for name in ("mean", "min", "max"))
    if values["min"] == values["max"]:
        return mean
    return f"{mean} ({least}{' to ' if least.startswith('-') else '-'}{most})"


def rows(header, body):
    """A Markdown table; the first column is text, the others are numbers."""
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *body]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def signature_list(signatures):
    """{metric: signature of sacrebleu} as a list."""
    return "Signatures:\n\n" + "\n".join(f"- {name}: `{it}`" for name, it in signatures.items())


def explained(test, number):
    """A sentence about the test behind the p-values."""
    return EXPLAINED[test].format(number)


def score_table(result):
    """One line for each system: of each metric its mean, range and confidence interval."""
    titles = result["metrics"]
    body = []
    for label, scores in result["scores"].items():
        cells = [f"{cell(scores[name])} ± {scores[name]['interval']:.2f}" for name in titles]
        body.append([label, len(result["files"][label]), *cells])
    return rows(["system", "runs", *titles.values()], body)


def test_table(result):
    """One line for each system and, of several runs, each of them: differences and p-values."""
    titles = result["metrics"]
    header = [f"less {result['baseline']}"]
    for title in titles.values():
        header += [title, "p"]
    body = []
    for label, found in result["tests"].items():
        tests = list(zip(*(found[name] for name in titles)))
        names = ["mean", *(f"run {number}" for number in range(1, len(tests)))]
        for name, values in zip(names, tests):
            cells = [(f"{each['difference']:+.2f}", f"{each['p']:.4f}") for each in values]
            line = f"{label}, {name}" if len(tests) > 1 else label
            body.append([line, *(text for pair in cells for text in pair)])
    return rows(header, body)


def markdown(result):
    """All tables of `evaluate`, with what they mean."""
    blocks = [
        f"{result['sentences']:,} sentences of `{result['references']}`; mean (range) over the "
        "runs ± half of its 95% bootstrap confidence interval over the sentences.",
        score_table(result),
    ]
    if result["tests"]:
        blocks += [explained(result["test"], result["samples"]), test_table(result)]
    blocks.append(signature_list(result["signatures"]))
    return "\n\n".join(blocks) + "\n"


def tab_separated(result):
    """The scores of all runs and the tests, one number a line; "mean" is over the runs."""
    lines = [("system", "metric", "run", "what", "value")]
    for label, scores in result["scores"].items():
        for name, values in scores.items():
            lines += [(label, name, run, "score", it) for run, it in enumerate(values["runs"], 1)]
            lines += [(label, name, "mean", what, values[what]) for what in ("mean", "interval")]
    for label, found in result["tests"].items():
        for name, tests in found.items():
            for run, test in zip(("mean", *range(1, len(tests))), tests):
                lines += [(label, name, run, what, test[what]) for what in ("difference", "p")]
    return "".join("\t".join(map(str, line)) + "\n" for line in lines)
