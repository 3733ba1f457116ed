"""The table of docs/fairseq-runs.md, made of the smoke runs."""

import re
from pathlib import Path

from compat.smoke import (
    example_rows,
    language_rows,
    other_rows,
    script_rows,
    speech_rows,
    text_rows,
)
from compat.smoke.untried import UNTRIED

PAGE = Path(__file__).resolve().parents[3] / "docs" / "fairseq-runs.md"
BEGIN, END = "<!-- smoke runs -->", "<!-- end of smoke runs -->"
ROWS = [
    *text_rows.ROWS,
    *language_rows.ROWS,
    *speech_rows.ROWS,
    *other_rows.ROWS,
    *example_rows.ROWS,
    *script_rows.ROWS,
]
# {what: (test in test_smoke.py, result)}
CODE = {
    "`torch.jit.script` of a translation model": ("test_torchscript_of_translation", "runs"),
    "`torch.jit.script` of a language model and RoBERTa": ("test_torchscript_of_others", "runs"),
    "trace for ONNX of a language model and RoBERTa": ("test_traces_for_onnx", "runs"),
    "`torch.export` of RoBERTa": (
        "test_export_is_refused",
        "does not work: torch refuses the encoder, whose steps depend on whether the batch has "
        "padding; use `torch.jit.script` or a trace",
    ),
}
REFUSED = "ends in an error: "


def commands(row):
    """The names of a row's commands, each once, in order."""
    return ", ".join(dict.fromkeys(f"`{line.split()[0]}`" for line in row.commands))


def result(row):
    """What the page says of a row."""
    if row.fails:
        return f"{REFUSED}{row.expect}"
    return f"runs; needs {', '.join(row.needs)}" if row.needs else "runs"


def table():
    """The lines of the table."""
    lines = ["| what | command or test | result |", "|---|---|---|"]
    lines += [f"| {row.name} | {commands(row)} | {result(row)} |" for row in ROWS]
    lines += [f"| {what} | `{test}` | {text} |" for what, (test, text) in CODE.items()]
    lines += [f"| {what} | none | {why} |" for what, why in UNTRIED.items()]
    return "\n".join(lines)


def parts():
    """The page's text before its table, the table, and the text behind it."""
    before, begin, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    inside, end, after = rest.partition(END)
    return before + begin, inside.strip("\n"), end + after


def write():
    """Write the table into the page."""
    before, _, after = parts()
    PAGE.write_text(f"{before}\n\n{table()}\n\n{after}", encoding="utf-8")


def words(option):
    """All values of an option in the commands of the rows."""
    values = set()
    for row in ROWS:
        for line in row.commands:
            values.update(re.findall(rf"--{option} (\S+)", line))
    return values
