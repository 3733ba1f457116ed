"""The table of all options: complete, as the runs say, and in the manual."""

import pytest
from options import audit


@pytest.mark.parametrize("command", audit.COMMANDS)
def test_every_option_has_a_row(command):
    spellings = audit.listed_options(command)
    named = {
        spellings.get(word, word)
        for row in audit.rows()
        if row.command == command
        for word in row.words.split()
        if word.startswith("--")
    }
    for group in audit.stock_groups():
        if command in group.commands:
            assert set(group.options) <= spellings.keys() and not named & set(group.options)
            named.update(spellings[option] for option in group.options)
    # an optimiser's and a schedule's own options come with --optimizer and --lr-scheduler
    assert named - set(spellings.values()) <= {"--warmup-updates"}
    assert not sorted(set(spellings.values()) - named - {""})


@pytest.mark.parametrize("row", audit.rows(), ids=lambda row: f"{row.command} {row.words}")
def test_verdicts_are_explained(row):
    assert row.verdict and "Error" not in row.verdict
    assert row.note or "keeps" not in row.verdict


def test_the_manual_has_the_table():
    text = audit.PAGE.read_text(encoding="utf-8")
    assert text.split(audit.BEGIN)[1].split(audit.END)[0].strip() == audit.page()


@pytest.mark.slow
@pytest.mark.timeout(7200)  # a command for every row
def test_verdicts_are_those_of_runs():
    """All rows run before any is judged: each takes a while, and one rarely changes alone."""
    rows = audit.rows()
    with audit.made() as models:
        runs = [audit.judged(row, models) for row in rows]
    changed = [f"{row.line()} -> {run.verdict}" for row, run in zip(rows, runs) if run != row]
    assert not changed, "\n".join(changed)
