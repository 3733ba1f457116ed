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
`<!-- experiment: NAME -->` stands before the circumstances of an experiment (experiments.json),
`<!-- choices -->` before the table of the overview (choices.json). pictures.json names what each
picture shows: rows of panels, or curves of systems over a field.
"""

import argparse
import csv
import hashlib
import json
import math
import re
import shlex
import sys
from pathlib import Path
from typing import Any, NamedTuple

DOCS = Path(__file__).resolve().parent.parent
DATA = DOCS / "results" / "data"
PAGES = [DOCS / "results.md", DOCS / "benchmarks" / "README.md", DOCS / "monolingual.md"]
PAGES += sorted(DOCS.glob("results/*.md"))
MARK = re.compile(
    r"(<!-- (table|choices|experiment)(?:: ([^\n]*?))? -->\n).*?(<!-- end \2 -->)", re.DOTALL
)

Measurement = dict[str, str]
# the fields of a measurement that do not tell what was measured where
MEASURED = {"metric", "seeds", "value", "low", "high", "deviation", "p", "interval", "values"}
TIMED = ("updates", "ms per update")


class Summary(NamedTuple):
    """Mean of measured values, and the lowest and highest of them or of their intervals."""

    mean: float
    low: float
    high: float


def measurements(name: str) -> list[Measurement]:
    """Return the measurements of an experiment, or of a JSON file of docs/benchmarks."""
    if name.endswith(".json"):
        record = json.loads((DOCS / "benchmarks" / name).read_text(encoding="utf-8"))
        return grown(record) if "axes" in record else compared(record)
    joined: list[Measurement] = []
    for file in name.split("+"):
        with open(DATA / f"{file}.csv", encoding="utf-8", newline="") as stream:
            joined += [
                {"experiment": file, **measurement} for measurement in csv.DictReader(stream)
            ]
    return joined


def compared(record: dict[str, Any]) -> list[Measurement]:
    """Return the ratios of each system to those before it in its family, in a record of run.py."""
    ratios = []
    for family, settings in record["families"].items():
        for setting in settings:
            results = setting["results"]
            for count, system in enumerate(results):
                for peer in list(results)[:count]:
                    shared = {"family": family, "system": system, "versus": peer}
                    shared["threads"] = str(setting["threads"])
                    if system == family and peer == list(results)[count - 1]:
                        shared["peer"] = "closest"
                    ratios += [
                        {**shared, "metric": part, "value": f"{ratio:.2f}"}
                        for part, ratio in part_ratios(results[system], results[peer]).items()
                    ]
    return ratios


def part_ratios(figures: dict[str, Any], peer: dict[str, Any]) -> dict[str, float]:
    """Return the ratios of speeds, of the memory and of the time of an update to a peer's."""
    ratios = {
        part: timed["rate"] / peer[part]["rate"]
        for part, timed in figures.items()
        if is_part(timed)
    }
    ratios["time of an update"] = 1 / ratios["training"]
    if figures["peak"] is not None and peer["peak"] is not None:
        ratios["memory"] = figures["peak"] / peer["peak"]
    return ratios


def is_part(figures: object) -> bool:
    """True for what was timed: training or a search."""
    return isinstance(figures, dict) and "rate" in figures


def grown(record: dict[str, Any]) -> list[Measurement]:
    """Return the slopes of time in a record of growth.py, measured and predicted."""
    slopes = []
    for axis, systems in record["axes"].items():
        for system, kinds in systems.items():
            for kind, curve in kinds.items():
                shared = {"grows": axis, "system": system, "work": kind}
                slopes += [
                    {**shared, "metric": name, "value": f"{value:.2f}"}
                    for name, value in curve["slopes"].items()
                    if not isinstance(value, bool)
                ]
    return slopes


def is_kept(measurement: Measurement, conditions: dict[str, str]) -> bool:
    """True if every condition FIELD=VALUE|VALUE, FIELD=* or FIELD= holds."""
    for field, allowed in conditions.items():
        value = measurement.get(field) or ""
        if not (bool(value) if allowed == "*" else value in allowed.split("|")):
            return False
    return True


def select(name: str, conditions: dict[str, str]) -> list[Measurement]:
    """Return the measurements under some conditions; ValueError without any."""
    selected = [m for m in measurements(name) if is_kept(m, conditions)]
    if not selected:
        raise ValueError(f"{name}: nothing was measured with {conditions}")
    return selected


def number(text: str, is_difference: bool = False) -> str:
    """Return a value with two decimals or thousands separators; differences have a sign."""
    if re.fullmatch(r"-?\d+\.\d{4,}|\d\d\.\d{3}", text):
        text = f"{float(text):.2f}".replace("-0.00", "0.00")
    shown = f"{int(text):,}" if re.fullmatch(r"\d{4,}", text) else text
    return f"+{shown}" if is_difference and not shown.startswith("-") else shown


def cell(measurement: Measurement) -> str:
    """Return the value with its range or deviation and its p-values."""
    is_difference = bool(measurement.get("versus")) and "family" not in measurement
    text = number(measurement["value"], is_difference)
    if measurement.get("low"):
        low, high = (number(measurement[side], is_difference) for side in ("low", "high"))
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


def summary(picks: dict[str, Any]) -> Summary:
    """Return the values that {"from": experiment, FIELD: condition} selects, as one."""
    conditions = {field: value for field, value in picks.items() if field not in ("from", "label")}
    selected = select(picks["from"], conditions)
    values = [float(m["value"]) for m in selected]
    lows = [(m.get("interval") or m.get("low") or m["value"]).split()[0] for m in selected]
    highs = [(m.get("interval") or m.get("high") or m["value"]).split()[-1] for m in selected]
    return Summary(sum(values) / len(values), min(map(float, lows)), max(map(float, highs)))


def training_seconds(name: str, systems: str) -> float:
    """Return the time of all updates of some systems, SYSTEM|SYSTEM, in all their places."""
    runs: dict[tuple[str, ...], dict[str, float]] = {}
    for m in select(name, {"system": systems, "versus": "", "metric": "|".join(TIMED)}):
        place = tuple(text for field, text in m.items() if field not in MEASURED)
        runs.setdefault(place, {})[m["metric"]] = float(m["value"])
    return sum(math.prod(figures[metric] for metric in TIMED) / 1000 for figures in runs.values())


def cost(picks: dict[str, str]) -> str:
    """Return the time relative to the baseline's, measured as a ratio or as time of all updates."""
    if "systems" in picks:
        name = picks["from"]
        ratio = training_seconds(name, picks["systems"]) / training_seconds(name, picks["baseline"])
        return f"{ratio:.1f}"
    if "baseline" in picks:
        baseline = {**picks, "system": picks["baseline"]}
        both = [
            summary({field: text for field, text in side.items() if field != "baseline"}).mean
            for side in (picks, baseline)
        ]
        return f"{both[0] / both[1]:.1f}"
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


def choices(_layout: str) -> str:
    """Return the table of the overview: what a method gains and costs in a situation."""
    lines = []
    for choice in json.loads((DATA / "choices.json").read_text(encoding="utf-8")):
        gains = "<br>".join(gain(picks) for picks in choice["gains"])
        advice = [choice[part] for part in ("data", "method", "use")]
        lines.append([*advice, gains, cost(choice["cost"]), choice["beside"], choice["evidence"]])
    # the answer first: a phone shows three columns
    heads = ["your data", "method", "use it?", "gain", "time", "compared with", "evidence"]
    return markdown(heads, lines).replace("---:", "---")


def experiment(name: str) -> str:
    """Return how an experiment was measured, as a list."""
    facts = json.loads((DATA / "experiments.json").read_text(encoding="utf-8"))[name]
    return "".join(f"- {fact}: {text}\n" for fact, text in facts.items())


def page_text(page: Path) -> str:
    """Return the page with its tables made from the measurements."""
    makers = {"table": table, "choices": choices, "experiment": experiment}

    def filled(match: re.Match[str]) -> str:
        begin, kind, layout, end = match.groups()
        return f"{begin}\n{makers[kind](layout or '')}\n{end}"

    return MARK.sub(filled, page.read_text(encoding="utf-8"))


def points(picture: dict[str, Any]) -> list[list[Summary]]:
    """Return what the rows of each panel of a picture show."""
    return [[summary(row) for row in panel["rows"]] for panel in picture["panels"]]


def curves(panel: dict[str, Any]) -> dict[str, list[tuple[float, Summary]]]:
    """Return {system: [(x, values)]}; x is the number with which the field panel["x"] begins.

    panel["x values"]: {value of the field: what is taken for it}; panel["names"]: {system: name}.
    """
    lines: dict[str, list[tuple[float, Summary]]] = {}
    layout = ("from", "title", "x", "x label", "x values", "y scale", "names")
    values, names = panel.get("x values", {}), panel.get("names", {})
    for m in select(panel["from"], {f: text for f, text in panel.items() if f not in layout}):
        place = re.match(r"[\d.]+", values.get(m[panel["x"]], m[panel["x"]]))
        if place is None:
            raise ValueError(f"{panel['title']}: {panel['x']} = {m[panel['x']]!r} has no number")
        name = names.get(m["system"], m["system"])
        shown = Summary(*(float(m.get(side) or m["value"]) for side in ("value", "low", "high")))
        lines.setdefault(name, []).append((float(place.group()), shown))
    return {name: sorted(line) for name, line in lines.items()}


def digest(picture: dict[str, Any]) -> str:
    """Return a text that changes with what the picture shows."""
    values = list(map(curves, picture["curves"])) if "curves" in picture else points(picture)
    shown = json.dumps([picture, values], sort_keys=True)
    return hashlib.sha256(shown.encode()).hexdigest()[:16]


def draw_rows(figure: Any, picture: dict[str, Any]) -> None:
    """Draw dots with ranges, a panel above the other."""
    heights = [len(panel["rows"]) + 1.6 for panel in picture["panels"]]
    figure.set_size_inches(8.5, 0.27 * sum(heights) + 0.3)
    grid = figure.subplots(len(heights), 1, squeeze=False, height_ratios=heights)[:, 0]
    for axis, panel, summaries in zip(grid, picture["panels"], points(picture)):
        for place, shown in enumerate(summaries):
            axis.plot([shown.low, shown.high], [place, place], color="C0", linewidth=2, alpha=0.5)
            axis.plot([shown.mean], [place], "o", color="C0", markersize=5)
        axis.axvline(panel.get("line", 0), color="black", linewidth=0.8)
        axis.set_yticks(range(len(summaries)), [row["label"] for row in panel["rows"]])
        axis.set_ylim(len(summaries) - 0.5, -0.5)
        axis.set_title(panel["title"], fontsize=9, loc="left")
        axis.grid(axis="x", alpha=0.3)


def draw_curves(figure: Any, picture: dict[str, Any]) -> None:
    """Draw a curve for each system, two panels beside each other."""
    panels, handles = picture["curves"], dict[str, Any]()
    lines = -(-len(panels) // 2)
    figure.set_size_inches(8.5, 3 * lines + 0.6)
    for number, panel in enumerate(panels, start=1):
        axis = figure.add_subplot(lines, 2, number)
        for system, line in curves(panel).items():
            colour = handles[system].get_color() if system in handles else f"C{len(handles)}"
            places, values = zip(*line)
            means, lows, highs = zip(*values)
            (handle,) = axis.plot(places, means, marker="o", markersize=3, color=colour)
            axis.fill_between(places, lows, highs, color=colour, alpha=0.2, linewidth=0)
            handles.setdefault(system, handle)
        axis.set_yscale(panel.get("y scale", "linear"))
        axis.set_title(panel["title"], fontsize=9, loc="left")
        axis.set_xlabel(panel.get("x label", panel["x"]))
        axis.grid(alpha=0.3)
    figure.legend(handles.values(), handles, loc="outside lower center", ncols=4, fontsize=8)


def draw(path: Path, picture: dict[str, Any]) -> None:
    """Draw a picture and note the digest in the SVG file."""
    import matplotlib
    from matplotlib.figure import Figure

    matplotlib.rcParams.update({"svg.hashsalt": "results", "svg.fonttype": "none", "font.size": 9})
    figure = Figure(layout="constrained")
    (draw_curves if "curves" in picture else draw_rows)(figure, picture)
    metadata = {"Date": None, "Description": digest(picture)}
    figure.savefig(path, format="svg", metadata=metadata)
    text = path.read_text(encoding="utf-8")
    path.write_text(re.sub(r"(?m) +$", "", text), encoding="utf-8")


def pictures() -> dict[Path, dict[str, Any]]:
    """Return what each picture shows."""
    named = json.loads((DATA / "pictures.json").read_text(encoding="utf-8"))
    return {DOCS / name: picture for name, picture in named.items()}


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
        print(f"{'outdated' if args.check else 'wrote'}: {path.relative_to(DOCS.parent)}")
    if args.check:
        return 1 if pages or drawings else 0
    for page, text in pages.items():
        page.write_text(text, encoding="utf-8")
    for path, picture in drawings.items():
        draw(path, picture)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
