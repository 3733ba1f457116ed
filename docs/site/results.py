"""Fill the tables and draw the pictures of the results pages from the measurements.

    make results                           write every page and picture that has changed
    python docs/site/results.py --check    name what would change; status 1 if anything would

The measurements are docs/results/data/*.csv: one line for each value of a system. A table stands
in a page between two marks:

    <!-- table: dual-multi30k rows=system columns=direction,metric set=val versus= -->
    <!-- end table -->

The first word names the file, several files joined by +, or a JSON file of docs/benchmarks.
FIELD=VALUE|VALUE keeps the measurements that have one of the values, FIELD=* those with any, FIELD=
those without one. VALUE=>TEXT writes TEXT for a value.
`<!-- spread: ... -->` stands before what the seeds of systems differ by; "LABEL=>FILE+FILE
FIELD=VALUE" is a row.
`<!-- experiment: NAME -->` stands before the circumstances of an experiment (experiments.json),
`<!-- choices -->` before the table of the overview (choices.json), `<!-- choices: evidence -->`
before what supports its rows, `<!-- choices: PAGE -->` before those that PAGE shows too.
pictures.json names what each picture shows: rows of panels, or curves of systems over a field.
"""

import argparse
import json
import math
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import measured
from drawing import digest, draw, replace_text
from measured import Measurement, select, summary

NAMES = ("results.md", "benchmarks/README.md", "monolingual.md", "few-pairs.md", "routed.md")
PAGES = [measured.DOCS / name for name in NAMES]
PAGES += sorted(measured.DOCS.glob("results/*.md"))
MARK = re.compile(
    r"(<!-- (table|choices|experiment|spread)(?:: ([^\n]*?))? -->\n).*?(<!-- end \2 -->)", re.DOTALL
)

# the fields of a measurement that do not tell what was measured where
MEASURED = {"metric", "seeds", "value", "low", "high", "deviation", "p", "interval", "values"}
TIMED = ("updates", "ms per update")


def number(text: str, is_difference: bool = False, is_exact: bool = False) -> str:
    """Return a value with two decimals or thousands separators; differences have a sign.

    is_exact: stored with more digits than are shown, of which zeros at the end are left out.
    """
    if re.fullmatch(r"-?\d+\.\d{4,}|\d\d\.\d{3}", text) or (is_exact and "." in text):
        text = f"{float(text):.2f}".replace("-0.00", "0.00")
    shown = f"{int(text):,}" if re.fullmatch(r"-?\d{4,}", text) else text
    return f"+{shown}" if is_difference and not shown.startswith("-") else shown


def cell(measurement: Measurement) -> str:
    """Return the value with its range or deviation and its p-values.

    A whole number that is the same for all seeds, such as that of parameters, has no range.
    """
    is_difference = bool(measurement.get("versus")) and "family" not in measurement
    # what a report stores has the value of each seed
    kind = is_difference, bool(measurement.get("values"))
    text = number(measurement["value"], *kind)
    is_whole = text.lstrip("+-").replace(",", "").isdigit()
    is_constant = is_whole and measurement.get("low") == measurement.get("high")
    if measurement.get("low") and not is_constant:
        low, high = (number(measurement[side], *kind) for side in ("low", "high"))
        text += f" ({low} to {high})"
    if measurement.get("deviation"):
        text += f" ± {measurement['deviation']}"
    if measurement.get("interval"):
        low, high = (f"{float(end):+.2f}" for end in measurement["interval"].split())
        text += f", 95% {low} to {high}"
    if measurement.get("p"):
        text += f", p {', '.join(measurement['p'].split())}"
    return text


def label(measurement: Measurement, fields: list[str], names: dict[str, str]) -> str:
    """Return the values of the fields; a system is followed by the one that it is compared with.

    names: {value: what is written instead}.
    """
    texts = []
    for field in fields:
        value = measurement.get(field) or ""
        value = names.get(value, value)
        if field == "system" and measurement.get("versus"):
            between = "beside" if "family" in measurement else "-"
            value += f" {between} {measurement['versus']}"
        texts.append(value)
    return ", ".join(filter(None, texts))


def markdown(columns: list[str], lines: list[list[str]]) -> str:
    """Return a Markdown table whose first column is text."""
    shown = [columns, ["---", *["---:"] * (len(columns) - 1)], *lines]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in shown) + "\n"


def table(layout: str) -> str:
    """Return the table that a mark describes. Raises ValueError if two values share a cell."""
    name, *words = shlex.split(layout)
    names = dict(word.split("=>") for word in words if "=>" in word)
    conditions = dict(word.split("=", 1) for word in words if "=>" not in word)
    rows, columns = (conditions.pop(side).split(",") for side in ("rows", "columns"))
    cells: dict[str, dict[str, str]] = {}
    heads: dict[str, None] = {}
    for measurement in select(name, conditions):
        row, head = (label(measurement, fields, names) for fields in (rows, columns))
        if head in cells.setdefault(row, {}):
            raise ValueError(f"{layout}: two values in the cell {row} / {head}")
        cells[row][head] = cell(measurement)
        heads[head] = None
    lines = [[row, *(by_head.get(head, "") for head in heads)] for row, by_head in cells.items()]
    title = ", ".join(field for field in rows if field != "versus")
    return markdown([title, *heads], lines)


def training_seconds(name: str, systems: str) -> float:
    """Return the time of all updates of some systems, SYSTEM|SYSTEM, in all their places."""
    runs: dict[tuple[str, ...], dict[str, float]] = {}
    for m in select(name, {"system": systems, "versus": "", "metric": "|".join(TIMED)}):
        place = tuple(text for field, text in m.items() if field not in MEASURED)
        runs.setdefault(place, {})[m["metric"]] = float(m["value"])
    return sum(math.prod(figures[metric] for metric in TIMED) / 1000 for figures in runs.values())


def cost(picks: dict[str, str]) -> str:
    """Return the time relative to the baseline's, measured as a ratio or as time of all updates.

    Where it was measured in several places, such as with several numbers of pairs, a range.
    """
    if "systems" in picks:
        name = picks["from"]
        ratio = training_seconds(name, picks["systems"]) / training_seconds(name, picks["baseline"])
        return f"{ratio:.1f}"
    if "baseline" in picks:
        where = {field: text for field, text in picks.items() if field not in ("from", "baseline")}
        both = [
            [float(m["value"]) for m in select(picks["from"], {**where, "system": system})]
            for system in (picks["system"], picks["baseline"])
        ]
        ratios = sorted(time / other for time, other in zip(*both))
        ends = dict.fromkeys(f"{ratio:.1f}" for ratio in (ratios[0], ratios[-1]))
        return " to ".join(ends)
    times = summary({field: text for field, text in picks.items() if field != "of"})
    text = f"{times.low:.2f}" if times.low == times.high else f"{times.low:.2f} to {times.high:.2f}"
    return f"{text} ({picks['of']})" if "of" in picks else text


def signed(value: float) -> str:
    """Return a difference with one decimal and its sign; 0.0 has none."""
    text = f"{value:+.1f}"
    return "0.0" if float(text) == 0 else text


def gain(picks: dict[str, str]) -> str:
    """Return the mean difference with the range of what was measured."""
    difference = summary(picks)
    text = signed(difference.mean)
    if difference.low != difference.high:
        text += f" ({signed(difference.low)} to {signed(difference.high)})"
    return f"{picks['label']} {text}" if "label" in picks else text


def choices(layout: str) -> str:
    """Return a table of the overview: what a method gains and costs in a situation.

    layout: empty for all choices, "evidence" for what supports each, or the name of a page, for the
    choices that are "also on" it.
    """
    listed = json.loads((measured.DATA / "choices.json").read_text(encoding="utf-8"))
    rows = {str(number): choice for number, choice in enumerate(listed, start=1)}
    if layout == "evidence":
        lines = [[row, choice["data"], choice["evidence"]] for row, choice in rows.items()]
        return markdown(["row", "your data", "evidence"], lines).replace("---:", "---")
    lines = []
    for row, choice in rows.items():
        gains = "<br>".join(gain(picks) for picks in choice["gains"])
        time = cost(choice["cost"]) if "cost" in choice else "not measured"
        if not layout:
            advice = [choice[part] for part in ("data", "method", "use")]
            lines.append([*advice, gains, time, choice["beside"], row])
        elif choice.get("also on") == layout:
            lines.append([choice["data"], choice["method"], gains, time])
    # the answer first: a phone shows three columns
    heads = ["your data", "method", "use it?", "gain", "time", "compared with", "row"]
    if layout:
        heads = [heads[0], heads[1], heads[3], heads[4]]
    return markdown(heads, lines).replace("---:", "---")


def spread(layout: str) -> str:
    """Return the table of how far the seeds lie apart, and what a difference must exceed."""
    words = shlex.split(layout)
    conditions = dict(word.split("=", 1) for word in words if "=>" not in word)
    counts = (1, 2, 3)
    heads = ["models", "95% of differences, one seed", "two seeds", "three seeds"]
    heads += ["deviation of a seed", "largest difference of two seeds", "degrees of freedom"]
    lines = []
    for group, kinds in (word.split("=>") for word in words if "=>" in word):
        files, *further = kinds.split()
        limits = dict(condition.split("=", 1) for condition in further)
        seeds = measured.spread(files, {**conditions, **limits})
        margins = [f"±{seeds.margin(count):.1f}" for count in counts]
        sizes = [f"{seeds.deviation:.2f}", f"{seeds.largest:.1f}", str(seeds.freedom)]
        lines.append([group, *margins, *sizes])
    return markdown(heads, lines)


def experiment(name: str) -> str:
    """Return how an experiment was measured, as a list."""
    facts = json.loads((measured.DATA / "experiments.json").read_text(encoding="utf-8"))[name]
    return "".join(f"- {fact}: {text}\n" for fact, text in facts.items())


def page_text(page: Path) -> str:
    """Return the page with its tables made from the measurements."""
    makers = {"table": table, "choices": choices, "experiment": experiment, "spread": spread}

    def filled(match: re.Match[str]) -> str:
        begin, kind, layout, end = match.groups()
        return f"{begin}\n{makers[kind](layout or '')}\n{end}"

    return MARK.sub(filled, page.read_text(encoding="utf-8"))


def pictures() -> dict[Path, dict[str, Any]]:
    """Return what each picture shows."""
    named = json.loads((measured.DATA / "pictures.json").read_text(encoding="utf-8"))
    return {measured.DOCS / name: picture for name, picture in named.items()}


def is_drawn(path: Path, picture: dict[str, Any]) -> bool:
    """True if the file shows the present measurements."""
    return path.is_file() and digest(picture) in path.read_text(encoding="utf-8")


def outdated() -> tuple[dict[Path, str], dict[Path, dict[str, Any]]]:
    """Return the new texts of the pages that would change, and the pictures to draw again."""
    texts = {page: page_text(page) for page in PAGES}
    pages = {page: text for page, text in texts.items() if text != page.read_text(encoding="utf-8")}
    return pages, {path: shown for path, shown in pictures().items() if not is_drawn(path, shown)}


def main(arguments: list[str]) -> int:
    """Write or name what is outdated; return the status of the command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing")
    args = parser.parse_args(arguments)
    pages, drawings = outdated()
    for path in [*pages, *drawings]:
        print(f"{'outdated' if args.check else 'wrote'}: {path.relative_to(measured.DOCS.parent)}")
    if args.check:
        return 1 if pages or drawings else 0
    for page, text in pages.items():
        replace_text(page, text)
    for path, picture in drawings.items():
        draw(path, picture)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
