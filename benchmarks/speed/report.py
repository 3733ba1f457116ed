"""Figures as JSON, Markdown and bar charts; where and when they were measured."""

import csv
import datetime
import io
import json
import platform
from argparse import Namespace
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple, Union

import fairseq
import numpy
import torch

from fairseq_ext.tools import UsageError, atomic_path
from fairseq_ext.tools.curves.figures import new_figure, save

from .families import EQUAL
from .harness import Figures, label

Record = Mapping[str, Any]  # as the .json file holds it
Cell = Union[str, float, None]
TRAINING = ["target tokens/s", "ratio", "expected ratio", "ratio at equal FLOP"]
TRAINING += ["share of the limit", "MFLOP/token", "padding, %", "peak MiB", "peak ratio"]
TRAINING += ["first update, s", "parameters"]
GIGA = 1e9
PANEL_INCHES = (4.5, 3.6)


def processor() -> str:
    """Return the processor's name."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as stream:
            for line in stream:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def circumstances(device: str) -> Dict[str, str]:
    """Return {"date", "device", "python", "torch", "numpy", "fairseq", "system"}."""
    return {
        "date": datetime.date.today().isoformat(),
        "device": torch.cuda.get_device_name() if device == "cuda" else processor(),
        "python": platform.python_version(),
        **{module.__name__: str(module.__version__) for module in (torch, numpy, fairseq)},
        "system": f"{platform.system()} {platform.machine()}",
    }


def settings_of(args: Namespace, *omitted: str) -> Dict[str, Any]:
    """Return the options as the .json file holds them."""
    return {
        name: str(value) if isinstance(value, Path) else value
        for name, value in vars(args).items()
        if name not in omitted
    }


def heading(record: Record) -> str:
    """Return a line that says when and where the record was measured."""
    return (
        f"{record['date']}, {record['device']}, Python {record['python']}, "
        f"torch {record['torch']}, fairseq {record['fairseq']}"
    )


def number(value: Optional[float]) -> str:
    """Return three or more significant digits with thousands separators; "" for None."""
    if value is None:
        return ""
    if isinstance(value, int):
        return f"{value:,}"
    if 0 < abs(value) < 0.01:
        return f"{value:.2g}"
    digits = next((n for n, bound in ((3, 1), (2, 10), (1, 1000)) if abs(value) < bound), 0)
    return f"{value:,.{digits}f}"


def table(columns: Sequence[str], lines: Sequence[Sequence[Cell]]) -> str:
    """Return a Markdown table. lines: lists of cells, texts or numbers."""
    shown = [columns, ["---"] * len(columns)]
    shown += [[cell if isinstance(cell, str) else number(cell) for cell in line] for line in lines]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in shown) + "\n"


def training_cells(figures: Figures) -> List[Cell]:
    """Return the cells of the columns ``TRAINING``."""
    part = figures["training"]
    return [
        part["rate"],
        *(part[name] for name in TRAINING[1:5]),
        part["operations"] / 1e6,
        100 * part["padding"],
        *(figures[name] for name in ("peak", "peak ratio", "first update", "parameters")),
    ]


def family_tables(name: str, settings: Sequence[Record]) -> str:
    """Return both tables of a family. settings: [{"precision", "threads", "results"}]."""
    training: List[List[Cell]] = []
    translation: List[List[Cell]] = []
    for setting in settings:
        where = f"{setting['precision']}, {setting['threads']}"
        for row, figures in setting["results"].items():
            training.append([where, row, *training_cells(figures)])
            searches = [key for key in figures if key.startswith("beam ")]
            cells = [
                figures[search][key]
                for search in searches
                for key in ("rate", "ratio", "share of the limit")
            ]
            translation.append([where, row, *cells])
    columns = ["precision, threads", "system"]
    text = f"### {name}\n\n" + table([*columns, *TRAINING], training)
    if searches:  # the same in all rows
        for search in searches:
            columns += [f"{search}: sentences/s", "ratio", "share"]
        text += "\n" + table(columns, translation)
    return text + "".join(at_equal_flop(name, setting) for setting in settings)


def at_equal_flop(name: str, setting: Record) -> str:
    """Return a line with the ratios to the stock model of as many operations, or "" without one."""
    stock, ours = setting["results"].get(EQUAL), setting["results"].get(name)
    if not stock or not ours:
        return ""
    part_ratios = [
        f"{part} {number(figures['rate'] / stock[part]['rate'])}"
        for part, figures in ours.items()
        if isinstance(figures, dict)
    ]
    where = f"{setting['precision']}, {setting['threads']} thread(s)"
    return f"\nRatios of {name} to {EQUAL}, {where}: {'; '.join(part_ratios)}.\n"


def startup_table(startup_times: Mapping[str, Mapping[str, Optional[float]]]) -> str:
    """Return the table of the seconds that commands take to start, by way."""
    ways = list(dict.fromkeys(way for times in startup_times.values() for way in times))
    lines = [[name, *(times.get(way) for way in ways)] for name, times in startup_times.items()]
    return "### Start-up, seconds\n\n" + table(["", *ways], lines)


def markdown(record: Record) -> str:
    """Return all tables of a record of run.py."""
    text = f"{heading(record)}.\n\n{sizes(record['settings'])}\n\n"
    lines = [
        [rates["precision"], str(rates["threads"]), rates["operations"] / GIGA,
         rates["bytes"] / GIGA]
        for rates in record["machine"]
    ]  # fmt: skip
    if lines:
        text += "### Peak rates of the machine\n\n"
        text += table(["precision", "threads", "GFLOP/s", "GB/s"], lines) + "\n"
    families = record["families"].items()
    text += "\n".join(family_tables(name, settings) for name, settings in families)
    return text + ("\n" + startup_table(record["startup"]) if record.get("startup") else "")


def sizes(settings: Record) -> str:
    """Return a paragraph about the sizes of models and measurements."""
    searches = "; ".join(label(*search) for search in settings["searches"])
    return (
        f"Transformers have {settings['layers']}+{settings['layers']} layers, widths of "
        f"{settings['embed_dim']}/{settings['ffn_embed_dim']} and {settings['heads']} heads. "
        f"Recurrent models have embeddings of {settings['embed_dim']}, {settings['hidden']} units "
        f"and an attention of {settings['context']}. The vocabulary has {settings['vocab']} "
        f"entries, a batch {settings['max_tokens']} tokens; sentences and hypotheses have "
        f"{settings['length']} tokens. Searches: {searches or 'none'}. Figures are medians of "
        f"{settings['repeats']} turns; higher rates and ratios are better, except for memory."
    )


def panels(titles: Sequence[str], columns: int) -> Tuple[Any, Dict[str, Any]]:
    """Return (figure, {title: axes}): a panel for each title, so many in a row."""
    figure, axes = new_figure(len(titles), columns, PANEL_INCHES)
    for title, panel in zip(titles, axes):
        panel.set_title(title)
        panel.grid(alpha=0.3)
    return figure, dict(zip(titles, axes))


def chart(record: Record, path: Path) -> None:
    """Draw bars of every system's ratio to its stock peer, with a panel for each kind of figure."""
    bars: Dict[str, List[Tuple[str, float]]] = {}
    for settings in record["families"].values():
        for setting in settings:
            where = f"{setting['precision']}, {setting['threads']} thr."
            for row, figures in list(setting["results"].items())[1:]:
                for title, value in ratios(figures).items():
                    bars.setdefault(title, []).append((f"{row}\n{where}", value))
    figure, axes = panels(list(bars), 1)
    figure.set_figwidth(9)
    for title, axis in axes.items():
        names, values = zip(*bars[title])
        colours = ["grey" if name.startswith("stock") else "C0" for name in names]
        drawn = axis.bar(range(len(values)), values, color=colours)
        axis.set_axisbelow(True)
        axis.margins(y=0.15)
        axis.bar_label(drawn, [f"{value:.2f}" for value in values])
        axis.set_xticks(range(len(values)), names, fontsize=6, rotation=45, ha="right")
        axis.axhline(1, color="black", linewidth=1)
    figure.suptitle(f"Ratio to stock fairseq; {record['device']}, {record['date']}", fontsize=9)
    save(figure, path)


def ratios(figures: Figures) -> Dict[str, float]:
    """Return {title of a panel: ratio} of a row."""
    panel_ratios = {"training, target tokens/s": figures["training"]["ratio"]}
    if figures["peak ratio"] is not None:
        panel_ratios["peak memory in training"] = figures["peak ratio"]
    for name, part in figures.items():
        if name.startswith("beam "):
            panel_ratios[f"generation, {name}"] = part["ratio"]
    return panel_ratios


def write(path: Path, text: str) -> None:
    """Write a text file, whole or not at all; its folder is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_path(path) as partial:
        partial.write_text(text, encoding="utf-8")
    print(f"wrote {path}")


def write_rows(path: Path, rows: Iterable[Sequence[object]]) -> None:
    """Write a CSV file, whole or not at all; the first row names the columns."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    write(path, text.getvalue())


def publish(
    record: Record,
    text: str,
    output: Path,
    draw: Optional[Callable[[Record, Path], None]] = None,
    into: Optional[Path] = None,
) -> None:
    """Print the text; write OUTPUT.json, OUTPUT.md and a picture.

    draw(record, path): makes OUTPUT.png. into: a page; the text replaces what stands there between
    the marks `<!-- begin NAME -->` and `<!-- end NAME -->`, NAME being that of OUTPUT.
    """
    print(text)
    before, after = page_around(into, output) if into else ("", "")
    write(output.with_name(f"{output.name}.json"), json.dumps(record, indent=1) + "\n")
    if draw:
        picture = output.with_name(f"{output.name}.png")
        draw(record, picture)
        print(f"wrote {picture}")
        text += f"\n![{heading(record)}]({picture.name})\n"
    if into:
        write(into, f"{before}\n\n{text}\n{after}")
    else:
        write(output.with_name(f"{output.name}.md"), text)


def page_around(page: Path, output: Path) -> Tuple[str, str]:
    """Return the text of a page up to the mark before OUTPUT's part, and from the mark after it.

    Raises UsageError for a page that lies elsewhere than OUTPUT or lacks a mark.
    """
    if page.resolve().parent != output.resolve().parent:
        raise UsageError(f"--into {page}: must be in the folder of --output {output}")
    begin, end = f"<!-- begin {output.name} -->", f"<!-- end {output.name} -->"
    text = page.read_text(encoding="utf-8") if page.is_file() else ""
    if (text.count(begin), text.count(end)) != (1, 1) or text.index(begin) > text.index(end):
        raise UsageError(f"--into {page}: there must be one line {begin}, and after it one {end}")
    return text[: text.index(begin)] + begin, text[text.index(end) :]
