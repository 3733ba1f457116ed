"""Scores of several runs as tables: Markdown and tab-separated values."""

import statistics
from typing import Any, Dict, Iterable, List, Sequence

Result = Dict[str, Any]  # of `evaluate`, as its .json file holds it
EXPLAINED = {
    "bootstrap": "The p-values come from a paired bootstrap test of systems with the same seed "
    "({:,} resamples, one-sided as in sacrebleu).",
    "randomisation": "The p-values come from a paired approximate randomisation test ({:,} trials, "
    "two-sided).",
}


def spread(values: Sequence[float]) -> Dict[str, float]:
    """Return mean and range of a metric over the seeds."""
    return {"mean": statistics.fmean(values), "min": min(values), "max": max(values)}


def cell(values: Dict[str, Any], digits: int = 2) -> str:
    """Return `mean (min-max)`, `mean (min to max)` below zero; with one seed only the value.

    digits: after the point; 0 for counts.
    """
    # + 0.0: no "-0.00"
    mean, least, most = (
        f"{round(values[name], digits) + 0.0:.{digits}f}" for name in ("mean", "min", "max")
    )
    if values["min"] == values["max"]:
        return mean
    return f"{mean} ({least}{' to ' if least.startswith('-') else '-'}{most})"


def half(values: Dict[str, Any]) -> str:
    """Return ` ± half` of a confidence interval; nothing for a single sentence, which has none."""
    return f" ± {values['interval']:.2f}" if "interval" in values else ""


def markdown_table(header: Sequence[Any], body: Iterable[Sequence[Any]]) -> str:
    """Return a Markdown table; the first column is text, the others are numbers."""
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *body]
    # a bar in a name would begin another column
    cells = ([str(value).replace("|", "\\|") for value in line] for line in lines)
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)


def signature_list(signatures: Dict[str, str]) -> str:
    """Return {metric: signature of sacrebleu} as a list."""
    lines = [f"- {name}: `{signature}`" for name, signature in signatures.items()]
    return "Signatures:\n\n" + "\n".join(lines)


def explained(result: Result) -> str:
    """Return what the p-values and the intervals are about."""
    several = any(len(files) > 1 for files in result["files"].values())
    over = "the sentences and the runs" if several else "the sentences, not over other trainings"
    test = EXPLAINED[result["test"]].format(result["samples"])
    return f"{test} 95% is the confidence interval of a difference over {over}."


def score_table(result: Result) -> str:
    """Return one line for each system: of each metric its mean, range and confidence interval."""
    titles = result["metrics"]
    body = []
    for label, scores in result["scores"].items():
        cells = [f"{cell(scores[name])}{half(scores[name])}" for name in titles]
        body.append([label, len(result["files"][label]), *cells])
    return markdown_table(["system", "runs", *titles.values()], body)


def ends(test: Dict[str, float]) -> str:
    """Return `low to high`, the interval of a difference; nothing for a single pair of runs."""
    return f"{test['low']:+.2f} to {test['high']:+.2f}" if "low" in test else ""


def test_table(result: Result) -> str:
    """Return a line for each system and each of several runs: differences and p-values."""
    titles = result["metrics"]
    header = [f"less {result['baseline']}"]
    for title in titles.values():
        header += [title, "95%", "p"]
    body = []
    for label, of_metric in result["tests"].items():
        # by test: the mean first, then run by run
        tests = list(zip(*(of_metric[name] for name in titles)))
        # as many as there are tests
        names = ["mean", *(f"run {number}" for number in range(1, len(tests)))]
        for name, values in zip(names, tests):
            cells = [(f"{t['difference']:+.2f}", ends(t), f"{t['p']:.4f}") for t in values]
            line = f"{label}, {name}" if len(tests) > 1 else label
            body.append([line, *(text for triple in cells for text in triple)])
    return markdown_table(header, body)


def markdown(result: Result) -> str:
    """Return all tables of `evaluate`, with what they mean."""
    if result["sentences"] > 1:
        number = f"{result['sentences']:,} sentences"
        interval = " ± half of its 95% bootstrap confidence interval over the sentences"
    else:
        number, interval = "1 sentence", ", without confidence intervals, which need 2 and more"
    blocks = [
        f"{number} of `{result['references']}`; mean (range) over the runs{interval}.",
        score_table(result),
    ]
    if result["tests"]:
        blocks += [explained(result), test_table(result)]
    blocks.append(signature_list(result["signatures"]))
    return "\n\n".join(blocks) + "\n"


def tab_separated(result: Result) -> str:
    """Return the scores of all runs and the tests, one number a line; "mean" is over the runs."""
    lines: List[Sequence[Any]] = [("system", "metric", "run", "what", "value")]
    for label, scores in result["scores"].items():
        for name, values in scores.items():
            scored = enumerate(values["runs"], 1)
            lines += [(label, name, run, "score", value) for run, value in scored]
            means = [what for what in ("mean", "interval") if what in values]
            lines += [(label, name, "mean", what, values[what]) for what in means]
    for label, of_metric in result["tests"].items():
        for name, tests in of_metric.items():
            for run, test in zip(("mean", *range(1, len(tests))), tests):
                lines += [(label, name, run, what, value) for what, value in test.items()]
    return "".join("\t".join(map(str, line)) + "\n" for line in lines)
