"""The whole recipe on tiny corpora: prepare, train, evaluate, report, curves."""

import configparser
import csv
import json

import pytest
from routed_recipe.settings import FOLDER

# what multi30k.cfg says instead, for a run of seconds
SMALL = {
    "data": {
        "sizes": "40", "source_vocabulary": "60", "target_vocabulary": "60",
        "graph_vocabulary": "30",
    },
    "model": {
        "options": "--embed-dim 8 --attention-size 8 --dropout 0.1",
        "single": "--arch mtl_full_gru --hidden-size 8",
        "full": "--arch mtl_full_gru --hidden-size 8",
        "routed": "--arch routed_gru --hidden-size 8 --router-size 4 --shared-blocks 2",
    },
    "train": {"updates": "4", "validations": "2"},
    "evaluate": {
        "options": "--beam 2 --max-tokens 400 --max-len-a 1 --max-len-b 5",
        "auxiliary": "--beam 1 --max-tokens 400 --max-len-a 1 --max-len-b 5",
    },
}  # fmt: skip
SYSTEMS = ("single.40", "full.40", "routed.40")
HELPERS = {"en-ner", "en-tree", "en-amr"}
MARKS = ("<!-- begin routed small 40 -->", "<!-- end routed small 40 -->")


def write_settings(path, changes):
    """multi30k.cfg with other values. changes: {section: {key: value}}."""
    parser = configparser.ConfigParser(interpolation=None)
    parser.read(FOLDER / "multi30k.cfg", encoding="utf-8")
    for section, values in changes.items():
        assert set(values) <= set(parser[section])
        parser[section].update(values)
    with open(path, "w", encoding="utf-8") as stream:
        parser.write(stream)


@pytest.fixture
def step(run, tmp_path):
    """Function (script, words) -> what examples/routed/SCRIPT.py prints, on small settings."""
    write_settings(tmp_path / "small.cfg", SMALL)

    def run_step(name, *words, **options):
        words = (*words, "--recipe", tmp_path / "small.cfg")
        return run("python", FOLDER / f"{name}.py", *words, cwd=tmp_path, **options)

    return run_step


def times(folder):
    """When what evaluation makes once was made; it writes scores.json anew each time."""
    paths = [path for path in folder.iterdir() if path.name != "scores.json"]
    return {path.name: path.stat().st_mtime_ns for path in paths}


def check_scores(run):
    """scores.json and the files beside it."""
    system = run.name.split(".")[0]
    result = json.loads((run / "scores.json").read_text(encoding="utf-8"))
    assert set(result["scores"]) == {"en-de"} | (HELPERS if system != "single" else set())
    assert set(result["scores"]["en-de"]) >= {"bleu", "ter", "ppl"} and result["updates"] == 4
    for pair in result["scores"]:
        assert (run / f"test.{pair}.hyp").is_file()
    for name in ("usage.tsv", "usage.png", "usage.categories.png"):
        assert (run / name).is_file() == (system == "routed")
    if system == "routed":
        with open(run / "usage.tsv", encoding="utf-8") as stream:
            rows = list(csv.DictReader(stream, delimiter="\t"))
        assert {row["task"] for row in rows} == {"en-de"} | HELPERS
        assert list(rows[0])[-2:] == ["block 1", "block 2"]
        assert (run / "usage.png").read_bytes().startswith(b"\x89PNG")
    return result


@pytest.mark.slow
@pytest.mark.timeout(1800)  # some 40 processes; minutes on idle cores, the default on busy ones
def test_recipe(step, raw_text, routed_raw, tmp_path):
    (routed_raw / "multi30k").mkdir()
    raw_text(routed_raw / "multi30k", (("train", 120), ("val", 12), ("test_2016_flickr", 12)))
    data, runs = tmp_path / "my data", tmp_path / "my runs"
    step("prepare", routed_raw, data)
    counts = json.loads((data / "prepared.json").read_text(encoding="utf-8"))["counts"]
    assert counts["main"]["train"] == 120 and counts["sizes"] == {"40": 40}
    results = {}
    for system in SYSTEMS:
        run = runs / f"{system}.1"
        assert f"trained: {run}" in step("train", data, runs, system, 1)
        assert "fairseq-generate" in step("evaluate", data, runs, system, 1)
        results[system] = check_scores(run)
    made = times(run)
    again = step("evaluate", data, runs, system, 1)
    assert "fairseq-generate" not in again and "router-usage" not in again
    assert times(run) == made and check_scores(run) == results[system]
    single, full, _ = (results[system]["parameters"] for system in SYSTEMS)
    assert single["all"] == single["translation"] < full["all"]

    page = tmp_path / "page.md"
    page.write_text("before\n" + "\n".join(MARKS) + "\nafter\n", encoding="utf-8")
    missing = step("report", data, runs, 1, "--into", page).split("not evaluated: ")[1]
    report = (runs / "report.md").read_text(encoding="utf-8")
    text = page.read_text(encoding="utf-8")
    assert text == f"before\n{MARKS[0]}\n\n{report}\n{MARKS[1]}\nafter\n"
    for system in SYSTEMS:
        assert f"| {system} |" in report and f"{system}.1" not in missing.split(", ")
    assert "partial.40.1" in missing and "routed_long.40.1" in missing
    for table in ("en-de", *HELPERS, "difference of BLEU", "system"):
        assert f"| {table} |" in report
    assert "| full.40 - single.40 |" in report

    step("curves", runs, 1, "--output", tmp_path / "curves.png")
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")

    # settings that are no longer those of the training
    changed = {**SMALL["train"], "updates": "5"}
    write_settings(tmp_path / "small.cfg", {**SMALL, "train": changed})
    before = (runs / "full.40.1" / "scores.json").read_bytes()
    refused = step("evaluate", data, runs, "full.40", 1, fails=True)
    assert "was trained with other options than the recipe has now" in refused
    assert "-4 +5" in refused and "Traceback" not in refused
    assert (runs / "full.40.1" / "scores.json").read_bytes() == before
