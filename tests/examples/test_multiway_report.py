"""The report and the pictures, on made-up translations of a few runs."""

import json

import pytest
from multiway_recipe.settings import read_settings
from multiway_recipe.systems import find_system
from recipe_tools import RecipeError
from recipe_tools.scores import log_likelihoods, score, seconds_per_update

DIRECTIONS = ("de-en", "en-de", "de-fr", "fr-de", "en-fr", "fr-en")
# system: how many of the forty sentences it gets wrong; the zero-shot one also by the pivot
WRONG = {
    "single.de-en": 20,
    "multi": 5,
    "single.50.de-en": 30,
    "df.50.de-en": 25,
    "multi.50.de-en": 10,
    "zero-shot": 15,
}


def make_run(settings, write, sentences, folder, name, seed):
    """Translations and scores.json of one run, in which `WRONG` - seed sentences are wrong."""
    system = find_system(settings, name)
    run, scores = folder / "runs" / f"{name}.{seed}", {"valid": {}, "test": {}}
    through = [each.replace("-", "-en-") for each in system.pivoted]
    for split, found in scores.items():
        for place, key in enumerate([*system.directions, *through]):
            # translations by the pivot are worse
            wrong = WRONG[name] - seed + (10 if key in through else 0)
            lines = ["nothing at all"] * wrong + sentences[wrong:]
            hypotheses = write(run / f"{split}.{key}.hyp", lines)
            references = folder / "data" / "raw" / f"{split}.{key.split('-')[-1]}"
            found[key], signatures = score(hypotheses, references)
            if key not in through:
                found[key]["likelihood"] = -10.0 - place
    result = {
        "recipe": settings.name,
        "settings": settings.relevant(system.sections),
        "scores": scores,
        "signatures": signatures,
        "parameters": {"unique": 1000 * len(system.pairs), "used": 900 * len(system.pairs)},
        "seconds_per_update": 0.25,
        "updates": 8 * len(system.pairs),
    }
    write(run / "scores.json", [json.dumps(result)])


@pytest.fixture
def made(tmp_path, small_multiway, write, sentences):
    """A folder with data/ and runs/ of two seeds."""
    settings = read_settings(small_multiway)
    for language in settings.languages:
        for split in ("valid", "test"):
            write(tmp_path / "data" / "raw" / f"{split}.{language}", sentences)
    stamp = {"counts": {"cuts": {"de-en.50": 1234}}}
    write(tmp_path / "data" / "prepared.json", [json.dumps(stamp)])
    for name in WRONG:
        for seed in (1, 2):
            make_run(settings, write, sentences, tmp_path, name, seed)
    return tmp_path


@pytest.fixture
def report(script, made, small_multiway):
    """Function (seeds and options) -> runs report.py."""
    start = [made / "data", made / "runs"]
    main = script("report", "multiway").main
    return lambda *words: main([*map(str, [*start, *words]), "--recipe", str(small_multiway)])


def test_report(report, made, write, capsys):
    marks = ["# R", "<!-- begin multiway small -->", "old", "<!-- end multiway small -->", "z"]
    page = write(made / "results.md", marks)
    report(2, 1, "--into", page)
    printed = capsys.readouterr().out
    text = (made / "runs" / "report.md").read_text(encoding="utf-8")
    assert text.strip() in printed and text.strip() in page.read_text(encoding="utf-8")
    assert "old" not in page.read_text(encoding="utf-8")
    # what was not run has no column, no line, or a dash
    assert "|  | Single | Multi |\n" in text and "|  | Single | Single+DF | Multi |\n" in text
    lines = [line for line in text.splitlines() if line.startswith("| en-de |")]
    assert lines and all(line.startswith("| en-de | - | ") for line in lines)
    assert "not evaluated: single.de-en.1" not in printed
    assert "multi.tuned.1, multi.tuned.2" in printed.split("not evaluated: ")[1]

    data = json.loads((made / "runs" / "report.json").read_text(encoding="utf-8"))
    low = {
        entry["column"]: entry
        for entry in data["scores"]["Low resource: one pair cut"]
        if entry["row"] == "de-en, 50% (1,234)"
        and (entry["split"], entry["metric"]) == ("test", "bleu")
    }
    assert low["Multi"]["min"] > low["Single+DF"]["max"] > low["Single+DF"]["min"]
    assert low["Single+DF"]["min"] > low["Single"]["max"]
    shown = f"{low['Multi']['mean']:.2f} ({low['Multi']['min']:.2f}-{low['Multi']['max']:.2f})"
    assert f" / {shown} |" in text
    assert "- Multi - Single+DF: significantly higher in 2, lower in 0 of 2" in text
    # by the pivot it is worse, whichever seed
    assert "- Zero-shot - by en: significantly higher in 4, lower in 0 of 4" in text
    assert "| de-fr | -10.00 / -10.00 | - | -12.00 / -12.00 |" in text
    assert "| multi | 6,000 | 5,400 | 48 | 250 |" in text


def test_contrasts_have_the_sign_of_system_less_baseline(report, made, capsys):
    report(1)
    found = json.loads((made / "runs" / "report.json").read_text(encoding="utf-8"))["tests"]
    by_contrast = {(each["row"], *each["contrast"]): each["by seed"] for each in found}
    (test,) = by_contrast["de-en", "Single", "Multi"]
    assert test["bleu"]["difference"] > 0 and test["bleu"]["p"] < 0.05
    assert "| de-en | +" in capsys.readouterr().out


def test_report_says_what_is_missing_or_outdated(report, made, small_multiway):
    with pytest.raises(RecipeError, match="has no scores.json for these seeds; run evaluate.py"):
        report(3)
    text = small_multiway.read_text(encoding="utf-8")
    small_multiway.write_text(text.replace("--beam 2", "--beam 3"), encoding="utf-8")
    with pytest.raises(RecipeError, match="scores.json was made with other settings"):
        report(1)


def write_log(write, path, values):
    """A log with validations at 8, 16, ... updates, or six times as many for multi."""
    names = DIRECTIONS if path.name.startswith("multi") else path.name.split(".")[1:2]
    line = "epoch 001 | valid on 'valid' subset | loss 2 | {0} | num_updates {1}"
    lines = []
    for number, value in enumerate(values, start=1):
        scores = " | ".join(f"{name}_bleu {value + place}" for place, name in enumerate(names))
        lines.append(line.format(scores, 8 * len(names) * number))
    write(path, lines)


def test_pictures(script, made, small_multiway, write):
    curves = script("curves", "multiway")
    write_log(write, made / "runs" / "single.de-en.1.log", [3.5, 4.5])
    write_log(write, made / "runs" / "multi.1.log", [2.5, 5.5])
    settings = read_settings(small_multiway)
    points = curves.validation_bleu(settings, made / "runs", [1, 2])
    assert points["de-en", "Single"] == [[(8, 3.5), (16, 4.5)]]
    assert points["en-de", "Multi"] == [[(8, 3.5), (16, 6.5)]]
    assert set(points) == {("de-en", "Single"), *((each, "Multi") for each in DIRECTIONS)}
    values = curves.bleu_by_percent(settings, made / "runs", [1, 2])
    assert set(values) == {("de-en", each) for each in ("Single", "Single+DF", "Multi")} | {
        ("en-de", "Multi")
    }
    assert len(values["de-en", "Single"][50]) == 2
    words = [str(made / "runs"), "1", "2", "--recipe", str(small_multiway), "--by", "data"]
    curves.main([*words, "--output", str(made / "data.png")])
    curves.main([*words[:-1], "updates", "--output", str(made / "updates.png")])
    for name in ("data", "updates"):
        assert (made / f"{name}.png").read_bytes().startswith(b"\x89PNG")


def test_curves_name_what_is_not_there(script, made, small_multiway):
    curves = script("curves", "multiway")
    words = [str(made), "1", "--recipe", str(small_multiway), "--output", str(made / "x.png")]
    with pytest.raises(RecipeError, match=r"has no log of multi or single\.DIRECTION"):
        curves.main(words)
    with pytest.raises(RecipeError, match=r"has no scores\.json of a cut pair"):
        curves.main([*words, "--by", "data"])


def test_likelihoods_are_natural_and_in_order(tmp_path, write):
    log = write(tmp_path / "log", ["P-1\t-1.0000 -2.0000", "H-1\t-1.5\tx", "P-0\t-0.5000"])
    assert log_likelihoods(log, 2) == pytest.approx([-0.5 * 0.693147, -3 * 0.693147], abs=1e-5)
    with pytest.raises(RecipeError, match="without one: 3"):
        log_likelihoods(log, 3)


def test_seconds_per_update_leave_out_resumed_epochs(tmp_path, write):
    def end(epoch, seconds, updates):
        text = f"2026 | INFO | train | epoch {epoch:03d} | loss 2 | num_updates {updates} "
        return f"{text}| lr 0.1 | train_wall {seconds} | wall 9"

    resumed = "2026 | INFO | Loaded checkpoint last.pt (epoch 3 @ 25 updates)"
    lines = [end(1, 10, 10), end(2, 20, 20), resumed, end(3, 1, 30), end(4, 6, 40)]
    log = write(tmp_path / "log", lines)
    assert seconds_per_update(log) == (pytest.approx(36 / 30), 40)
    # three epochs of 12 seconds on average
    assert seconds_per_update(log, 12) == (pytest.approx(36 / 30), 40)
    assert seconds_per_update(log, 13) == (0.0, 40)
