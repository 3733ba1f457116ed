"""Values over seeds, Markdown tables, and putting them into a page."""

import statistics

from . import RecipeError
from .files import written
from .scores import RESAMPLES

SIGNIFICANT = 0.05
BOOTSTRAP = (
    f"Paired bootstrap of the systems of the same seed, {RESAMPLES:,} resamples; sacrebleu's "
    "p-value is one-sided."
)


def spread(values):
    """Mean and range of a metric over the seeds."""
    return {"mean": statistics.fmean(values), "min": min(values), "max": max(values)}


def cell(values):
    """A spread, `mean (min-max)`; with one seed only the value."""
    if values["min"] == values["max"]:
        return f"{values['mean']:.2f}"
    return f"{values['mean']:.2f} ({values['min']:.2f}-{values['max']:.2f})"


def rows(header, body):
    """A Markdown table; the first column is text, the others are numbers."""
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *body]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def signature_list(signatures):
    """{metric: signature of sacrebleu} as a list."""
    return "Signatures:\n\n" + "\n".join(f"- {name}: `{it}`" for name, it in signatures.items())


def insert(text, path, name):
    """Replace what stands between the marks of `name` in the file `path`.

    Raises RecipeError unless both marks are there, once and in order.
    """
    begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    if not path.is_file():
        raise RecipeError(f"--into {path} is not a file")
    old = path.read_text(encoding="utf-8")
    if old.count(begin) != 1 or old.count(end) != 1 or old.index(begin) > old.index(end):
        raise RecipeError(f"--into {path} must hold these lines, once each: {begin} and {end}")
    before, rest = old.split(begin)
    after = rest.split(end)[1]
    with written(path) as stream:
        stream.write(f"{before}{begin}\n\n{text}\n{end}{after}")
