"""A small version of an experiment, run from raw data to the tables of the manual."""

import csv
import dataclasses
import json
import shutil
import sys

import measured
import pages
import pytest
from experiments.definition import FOLDER, read_experiment
from experiments.results import report
from script_modules import load_script

DOCS = pages.REPOSITORY / "docs"


class SmallExperiment:
    """An experiment with other variables, in a folder of its own.

    run: the fixture. name: such as dual/multi30k. changes: the text of [variables], and what
    follows it.
    """

    def __init__(self, run, folder, name, changes):
        self.run, self.folder, self.name = run, folder, name
        for path in (FOLDER / name).parent.glob("*.toml"):
            shutil.copy(path, folder)
        self.file = folder / "small.toml"
        like = name.split("/")[1]
        text = f'like = "{like}"\ntitle = "invented data"\n[variables]\n{changes}'
        self.file.write_text(text, encoding="utf-8")
        self.data, self.runs = folder / "my data", folder / "my runs"

    def step(self, *words):
        """What run.py prints for these words."""
        places = ("--data", self.data, "--runs", self.runs)
        command = (sys.executable, FOLDER / "run.py", self.file, *words, *places)
        # many commands, each of which imports fairseq; the test has a limit of its own
        return self.run(*command, cwd=self.folder, timeout=3600)

    def train(self, *systems):
        """Train and score systems with seed 1."""
        for system in systems:
            assert "done:" in self.step(system, 1)

    def report(self):
        """The values that the report stores, as docs/site/results.py reads them."""
        docs = self.folder / "docs"
        shutil.copytree(DOCS / "results", docs / "results")
        experiment = dataclasses.replace(read_experiment(str(self.file)), name=self.name)
        # the copies of the stored values are of larger runs
        report(experiment, self.data, self.runs, [1], docs=docs / "results" / "data", force=True)
        name = self.name.replace("/", "-")
        facts = json.loads((docs / "results" / "data" / "experiments.json").read_text("utf-8"))
        assert facts[name]["recipe"] == f"`{self.name}`"
        path = docs / "results" / "data" / f"{name}.csv"
        with open(path, encoding="utf-8", newline="") as stream:
            return list(csv.DictReader(stream))

    def check_page(self, page):
        """The page of the manual and its pictures can be made from what the report stored."""
        results = load_script(DOCS / "site" / "results.py")
        docs = self.folder / "docs"
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(measured, "DATA", docs / "results" / "data")
            assert "invented data" in results.page_text(docs / "results" / page)


def values_of(lines, metric, **fields):
    """{(system, versus): value} of the lines with these fields."""
    return {
        (line["system"], line["versus"]): float(line["value"])
        for line in lines
        if line["metric"] == metric and all(line[name] == text for name, text in fields.items())
    }
