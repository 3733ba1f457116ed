"""Figures as JSON, Markdown and bar charts; where and when they were measured."""

import datetime
import json
import platform
from importlib import metadata
from pathlib import Path

import torch
from recipe_tools import RecipeError
from recipe_tools.curves import panels, save
from recipe_tools.files import written
from recipe_tools.tables import insert

from .families import EQUAL
from .harness import label

TRAINING = ["target tokens/s", "ratio", "expected ratio", "ratio at equal FLOP"]
TRAINING += ["share of the limit", "MFLOP/token", "padding, %", "peak MiB", "peak ratio"]
TRAINING += ["first update, s", "parameters"]
GIGA = 1e9


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


def device_name(device: str) -> str:
    return torch.cuda.get_device_name() if device == "cuda" else processor()


def circumstances(device: str):
    """Return {"date", "device", "python", "torch", "numpy", "fairseq", "system"}."""
    versions = {}
    for name in ("torch", "numpy", "fairseq"):
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = "unknown"
    return {
        "date": datetime.date.today().isoformat(),
        "device": device_name(device),
        "python": platform.python_version(),
        **versions,
        "system": f"{platform.system()} {platform.machine()}",
    }


def heading(record) -> str:
    """Return a line that says when and where the record was measured."""
    return (
        f"{record['date']}, {record['device']}, Python {record['python']}, "
        f"torch {record['torch']}, fairseq {record['fairseq']}"
    )


def number(value) -> str:
    """Return three or more significant digits with thousands separators; "" for None."""
    if value is None:
        return ""
    if isinstance(value, int):
        return f"{value:,}"
    if 0 < abs(value) < 0.01:
        return f"{value:.2g}"
    digits = next((n for n, bound in ((3, 1), (2, 10), (1, 1000)) if abs(value) < bound), 0)
    return f"{value:,.{digits}f}"


def table(columns, lines) -> str:
    """Return a Markdown table. lines: lists of cells, texts or numbers."""
    shown = [columns, ["---"] * len(columns)]
    shown += [[cell if isinstance(cell, str) else number(cell) for cell in line] for line in lines]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in shown) + "\n"


def training_cells(figures):
    part = figures["training"]
    return [
        part["rate"],
        *(part[name] for name in TRAINING[1:5]),
        part["operations"] / 1e6,
        100 * part["padding"],
        figures["peak"],
        figures["peak ratio"],
        figures["first update"],
        figures["parameters"],
    ]


def family_tables(name, settings) -> str:
    """Return both tables of a family. settings: [{"precision", "threads", "results"}]."""
    training, searches, cells = [], [], []
    for setting in settings:
        where = f"{setting['precision']}, {setting['threads']}"
        for row, figures in setting["results"].items():
            training.append([where, row, *training_cells(figures)])
            row_searches = [key for key in figures if key.startswith("beam ")]
            searches = searches or row_searches
            line = [where, row]
            for search in row_searches:
                part = figures[search]
                line += [part["rate"], part["ratio"], part["share of the limit"]]
            cells.append(line)
    text = f"### {name}\n\n" + table(["precision, threads", "system", *TRAINING], training)
    if searches:
        heads = [
            head
            for search_name in searches
            for head in (f"{search_name}: sentences/s", "ratio", "share")
        ]
        text += "\n" + table(["precision, threads", "system", *heads], cells)
    return text + "".join(at_equal_flop(name, setting) for setting in settings)


def at_equal_flop(name, setting) -> str:
    """Return a line with the ratios to the stock model of as many operations, or "" without one."""
    stock, ours = setting["results"].get(EQUAL), setting["results"].get(name)
    if not stock or not ours:
        return ""
    part_ratios = [
        f"{part} {number(ours[part]['rate'] / stock[part]['rate'])}"
        for part in ours
        if isinstance(ours[part], dict)
    ]
    where = f"{setting['precision']}, {setting['threads']} thread(s)"
    return f"\nRatios of {name} to {EQUAL}, {where}: {'; '.join(part_ratios)}.\n"


def startup_table(startup_times) -> str:
    ways = list(dict.fromkeys(way for times in startup_times.values() for way in times))
    lines = [[name, *(times.get(way) for way in ways)] for name, times in startup_times.items()]
    return "### Start-up, seconds\n\n" + table(["", *ways], lines)


def markdown(record) -> str:
    """Return all tables of a record of run.py."""
    text = f"{heading(record)}.\n\n{sizes(record['settings'])}\n\n"
    lines = [
        [
            rates["precision"],
            str(rates["threads"]),
            rates["operations"] / GIGA,
            rates["bytes"] / GIGA,
        ]
        for rates in record["machine"]
    ]
    if lines:
        text += "### Peak rates of the machine\n\n"
        text += table(["precision", "threads", "GFLOP/s", "GB/s"], lines) + "\n"
    text += "\n".join(
        family_tables(name, settings) for name, settings in record["families"].items()
    )
    if record.get("startup"):
        text += "\n" + startup_table(record["startup"])
    return text


def sizes(settings) -> str:
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


def chart(record, path) -> None:
    """Draw bars of every system's ratio to its stock peer, with a panel for each kind of figure."""
    bars = {}
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


def ratios(figures):
    """Return {title of a panel: ratio} of a row."""
    panel_ratios = {"training, target tokens/s": figures["training"]["ratio"]}
    if figures["peak ratio"] is not None:
        panel_ratios["peak memory in training"] = figures["peak ratio"]
    panel_ratios.update(
        (f"generation, {name}", part["ratio"])
        for name, part in figures.items()
        if name.startswith("beam ")
    )
    return panel_ratios


def write(path: Path, text: str) -> None:
    """Write a text file, whole or not at all; its folder is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with written(path) as stream:
        stream.write(text)
    print(f"wrote {path}")


def publish(record, text, output: Path, draw=None, into=None) -> None:
    """Write OUTPUT.json, OUTPUT.md and a picture; with ``into`` the text replaces that page's part.

    draw(record, path): makes OUTPUT.png. In the page the text is between the marks
    `<!-- begin NAME -->` and `<!-- end NAME -->`, NAME being that of OUTPUT.
    """
    picture = output.with_name(f"{output.name}.png")
    check_page(output, into)
    write(output.with_name(f"{output.name}.json"), json.dumps(record, indent=1) + "\n")
    if draw:
        draw(record, picture)
        print(f"wrote {picture}")
        text += f"\n![{heading(record)}]({picture.name})\n"
    if into:
        insert(text, into, output.name)
        print(f"wrote {into}")
    else:
        write(output.with_name(f"{output.name}.md"), text)


def check_page(output: Path, into) -> None:
    """Raise RecipeError, before any measurement, for a page that lies elsewhere or has no marks."""
    if not into:
        return
    if into.resolve().parent != output.resolve().parent:
        raise RecipeError(f"--into {into}: must be in the folder of --output {output}")
    text = into.read_text(encoding="utf-8") if into.is_file() else ""
    for mark in (f"<!-- begin {output.name} -->", f"<!-- end {output.name} -->"):
        if mark not in text:
            raise RecipeError(f"--into {into}: there is no line {mark}")
