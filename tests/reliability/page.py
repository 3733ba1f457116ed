"""The table of bad inputs on the page "Reliability"."""

import html
import itertools
import platform
from datetime import date
from pathlib import Path
from typing import List

import torch

from .check import Row

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reliability.md"
BEGIN, END = "<!-- begin bad input -->", "<!-- end bad input -->"
LENGTH = 200  # characters of a last line that are shown

INTRODUCTION = """
A user's mistake ends every command without a traceback, and nothing is written. The last line
names the option or file, the value, and what is allowed. The status is 2 if the line begins with
an option, 1 if with a file or data ([how commands end](compat.md#how-commands-end)).
`tests/reliability` checks all of this for {count} bad inputs; the tables show the last lines, as
they were on {date} ({versions}).

The column *system* names a valid command, to which the words in *what* were added. `data=` and
`path=` replace its data folder and checkpoint. `bad/` holds damaged copies.

| command | bad inputs |
|---|---|
{summary}
"""


def write(rows: List[Row]) -> None:
    """Replace the tables of the page."""
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    PAGE.write_text(f"{before}{BEGIN}\n{section(rows)}{END}{after}", encoding="utf-8")


def write_some(rows: List[Row]) -> None:
    """Replace rows that the page has, after a run of some cases alone."""
    text = PAGE.read_text(encoding="utf-8")
    for row in rows:
        name = f"<details><summary>{row.case.command}: "
        before, rest = text.split(name)
        group, end, after = rest.partition("</details>")
        start = table_row(row).partition("</code>")[0] + "</code>"  # system and bad input
        lines = [table_row(row) if line.startswith(start) else line for line in group.split("\n")]
        text = before + name + "\n".join(lines) + end + after
    PAGE.write_text(text, encoding="utf-8")


def section(rows: List[Row]) -> str:
    """What stands between the markers."""
    ordered = sorted(rows, key=lambda row: row.case.command)  # stable: the order of the tables
    groups = [(name, list(group)) for name, group in itertools.groupby(ordered, _command)]
    summary = "\n".join(f"| `{name}` | {len(group)} |" for name, group in groups)
    text = INTRODUCTION.format(
        count=len(rows), summary=summary, date=date.today(), versions=versions()
    )
    return text + "\n" + "\n".join(_details(name, group) for name, group in groups) + "\n"


def versions() -> str:
    """What the wording of a message may depend on; argparse and torch are quoted in some."""
    python = platform.python_version().rpartition(".")[0]
    return f"Python {python}, torch {torch.__version__.partition('+')[0]}"


def is_comparable(text: str) -> bool:
    """True if the tables in the text of the page were written with the present versions."""
    return f"({versions()})" in text


def _command(row: Row) -> str:
    return row.case.command


def _details(name: str, rows: List[Row]) -> str:
    head = "".join(f"<th>{word}</th>" for word in ("system", "what", "status", "last line"))
    lines = [f"<details><summary>{name}: {len(rows)}</summary>", f"<table><tr>{head}</tr>"]
    lines += [table_row(row) for row in rows]
    return "\n".join([*lines, "</table></details>", ""])


def table_row(row: Row) -> str:
    """The row as the page has it."""
    last = row.last.partition(": error: ")[2]
    last = last if len(last) <= LENGTH else last[:LENGTH] + " (cut here)"
    cells = (row.case.system, code(row.case.bad), str(row.status), code(last))
    return f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"


def code(text: str) -> str:
    """The text as HTML sets code."""
    return f"<code>{html.escape(text, quote=False)}</code>"
