"""examples/sentiment: tokens, splits, commands, scores; the whole recipe on made-up reviews."""

import io
import json
import math
import random
import shlex
import tarfile
from pathlib import Path

import pytest
from recipe_tools import RecipeError
from sentiment_recipe import commands, corpus, scoring, settings, tables

PARSE_AND_BUILD = Path(__file__).with_name("parse_and_build.py")
BOTH_WAYS = ("dual", "dsl", "dual.dsl")
SMALL = {
    "valid = 3750": "valid = 8",
    "vocabulary = 5000": "vocabulary = 30",
    "words = 100": "words = 9",
    "--embed-dim 128 --hidden-size 128": "--embed-dim 8 --hidden-size 8",  # of both
    "--batch-size 48 --batch-size-valid 250 --max-epoch 4": "--batch-size 8 --max-epoch 1",
    "interval = 200": "interval = 3",
    "first_updates = 1600": "first_updates = 6",
    "second_updates = 400": "second_updates = 3",
    "    --batch-size 48 --batch-size-valid 250 --clip": "    --batch-size 8 --clip",
}


def write_archive(path, reviews):
    """reviews: {name in the archive: text}."""
    with tarfile.open(path, "w:gz") as archive:
        for name, text in reviews.items():
            content = text.encode("utf-8")
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


def random_reviews(rng, count):
    words = "the film was a plot so it and fine poor".split()
    return {
        f"aclImdb/{split}/{label}/{number}_7.txt": " ".join(rng.choices(words, k=12))
        for split in ("train", "test")
        for label in ("pos", "neg")
        for number in range(count)
    }


@pytest.mark.parametrize(
    "review, count, line",
    [
        ("It's GOOD!<br /><br />A 10/10.", 0, "it's good ! a 10 / 10 ."),
        ("It's good, isn't it?", 3, "it's good ,"),
        ("«Été» _so-so_", 0, "« été » _ so - so _"),
    ],
)
def test_tokens(review, count, line):
    assert corpus.tokens(review, count) == line


def test_reviews_are_read_by_label_and_number(tmp_path):
    reviews = random_reviews(random.Random(1), 3)
    reviews["aclImdb/train/unsup/0_0.txt"] = "not labelled"
    found = corpus.read_reviews(write_archive(tmp_path / "a.tar.gz", reviews), 4)
    for split in ("train", "test"):
        assert [review[:2] for review in found[split]] == [
            (number, label) for label in ("neg", "pos") for number in range(3)
        ]
        for number, label, line in found[split]:
            name = f"aclImdb/{split}/{label}/{number}_7.txt"
            assert line == " ".join(reviews[name].split()[:4])


def test_the_split_is_the_same_and_complete():
    reviews = list(range(20))
    valid, train = corpus.split_off(reviews, 5)
    assert (valid, train) == corpus.split_off(reviews, 5)
    assert len(valid) == 5 and sorted(valid + train) == reviews
    with pytest.raises(RecipeError, match=r"valid = 20: allowed: 1 to 19"):
        corpus.split_off(reviews, 20)


@pytest.mark.parametrize(
    "reviews, message",
    [
        ({"aclImdb/train/pos/0_9.txt": "<br />"}, "train/pos/0_9.txt has no words"),
        ({"aclImdb/train/pos/0_9.txt": "fine"}, "has no test/pos"),
    ],
)
def test_bad_archives_are_named(tmp_path, reviews, message):
    with pytest.raises(RecipeError, match=message):
        corpus.read_reviews(write_archive(tmp_path / "a.tar.gz", reviews), 0)


def test_what_is_no_archive_is_named(tmp_path):
    (tmp_path / "a.tar.gz").write_text("nothing", encoding="utf-8")
    with pytest.raises(RecipeError, match="RAW .*a.tar.gz"):
        corpus.read_reviews(tmp_path / "a.tar.gz", 0)


RECIPES = ("imdb", "imdb_paper")


@pytest.mark.parametrize("recipe", RECIPES)
def test_systems_differ_in_their_directions_alone(recipe, tmp_path):
    found, own = settings.read_settings(recipe), {}
    for name, system in settings.SYSTEMS.items():
        if system.supervised:
            continue
        for stage in found.stages:
            words = commands.train_command(found, name, 1, tmp_path, tmp_path, stage)
            words = [str(word) for word in words]
            sides = [words[words.index(flag) + 1] for flag in ("-s", "-t")]
            assert sides == system.directions[0].split("-")
            assert ("--one-way" in words) == (len(system.directions) == 1)
            metric = words[words.index("--best-checkpoint-metric") + 1]
            chosen = (
                "text-label_error" if stage.name == "second" and name != "generator" else "loss"
            )
            assert metric == chosen
            assert ("--finetune-from-model" in words) == (stage.name == "second")
            drop = {"--one-way", metric, *sides}
            own[name, stage.name] = [word for word in words if word not in drop]
    for stage in ("first", "second"):
        assert own["dual", stage] == own["classifier", stage] == own["generator", stage]


@pytest.mark.parametrize("recipe", RECIPES)
def test_dual_supervised_learning_differs_in_the_criterion_alone(recipe, tmp_path):
    """From the dual model, and with two models of its sizes."""
    found = settings.read_settings(recipe)
    model = tmp_path / "lm.text.1" / "checkpoint_best.pt"
    given = ["--criterion", "dual_supervised", "--language-models", f"text={model}"]
    for stage in found.stages:
        dual, tied, two = (
            [str(word).replace(f"{name}.1", "run") for word in words]
            for name in ("dual", "dual.dsl", "dsl")
            for words in [
                commands.train_command(found, name, 1, tmp_path, tmp_path / f"{name}.1", stage)
            ]
        )
        place = tied.index("--criterion")
        assert tied[place : place + 6] == [*given, "--dsl-weight", "0.1"]
        plain = [*tied[:place], *dual[place : place + 2], *tied[place + 6 :]]
        assert plain == dual and dual[place + 1] == "dual_label_cross_entropy"
        place = [number for number, word in enumerate(two) if word == "--arch"]
        first, second = (two[number + 1] for number in place)
        assert second == first.replace("dual_", "dual_supervised_", 1)
        assert [*two[: place[1]], *two[place[1] + 2 :]] == tied


def test_commands_of_dual_supervised_learning_build(run, tmp_path):
    """The language model's too; `dsl` has the parameters of both baselines."""
    keys, lines = ("dual", "dual.dsl", "dsl", "classifier", "generator", "lm.text"), []
    (tmp_path / "bin" / "lm.text").mkdir(parents=True)
    words = "".join(f"word{number} 1\n" for number in range(40))
    for name, text in (
        ("dict.text", words),
        ("dict.label", "neg 2\npos 2\n"),
        ("lm.text/dict", words),
    ):
        (tmp_path / "bin" / f"{name}.txt").write_text(text, encoding="utf-8")
    for name in keys:
        script = settings.FOLDER / "train.py"
        line = run("python", script, tmp_path, tmp_path / "runs", name, 1, "--dry-run")
        lines.append(shlex.split(line.splitlines()[0]))
    output = run("python", PARSE_AND_BUILD, stdin=json.dumps(lines))
    line = next(line for line in output.splitlines() if line.startswith("RESULT "))
    found = dict(zip(keys, json.loads(line[len("RESULT ") :])))
    size = {name: each["parameters"] for name, each in found.items()}
    assert size["dsl"] == size["classifier"] + size["generator"]
    assert size["dual"] == size["dual.dsl"] == size["generator"]
    assert found["dsl"]["model"] == "DualSupervisedLSTMClassifierModel"
    assert found["dsl"]["criterion"] == found["dual.dsl"]["criterion"] == "dual_supervised"
    assert found["lm.text"]["task"] == "LanguageModelingTask"


def test_what_is_missing_or_unknown_is_named(script, tmp_path):
    with pytest.raises(RecipeError, match="'lstm' is unknown; allowed: classifier, .* lm.text"):
        settings.system_named("lstm")
    (tmp_path / "bin").mkdir()
    words = [str(tmp_path), str(tmp_path / "runs")]
    again = r"lm\.text\.1\S* does not exist; run train.py DATA RUNS lm.text 1 first"
    for system in ("dsl", "dual.dsl"):
        with pytest.raises(RecipeError, match=again):
            script("train", "sentiment").main([*words, system, "1"])
    with pytest.raises(RecipeError, match="no folder bin/lm.text; run prepare.py first"):
        script("train", "sentiment").main([*words, "lm.text", "1"])
    with pytest.raises(
        RecipeError,
        match=r"SYSTEM lm.text is a language model and is not evaluated; its perplexity .*log",
    ):
        script("evaluate", "sentiment").main([*words, "lm.text", "1"])


def test_results_depend_on_the_settings_of_their_own_system(tmp_path):
    text = (settings.FOLDER / "imdb.cfg").read_text(encoding="utf-8")
    before, path = settings.read_settings("imdb"), tmp_path / "imdb.cfg"
    path.write_text(text.replace("--dsl-weight 0.1", "--dsl-weight 1"), encoding="utf-8")
    after = settings.read_settings(path)
    for name, system in settings.SYSTEMS.items():
        assert (before.relevant(name) == after.relevant(name)) is not system.supervised


def results_of(systems, seeds):
    """{(system, seed): content of a scores.json}."""
    found = {}
    for number, name in enumerate(systems):
        values = {"valid": 10.0 + number, "test": 20.0 + number}
        for seed in seeds:
            scores = {"error": values, "dual_error": values, "alpha": 0.5, "perplexity": values}
            if name == "generator":
                scores = {"perplexity": values}
            found[name, seed] = {
                "scores": scores,
                "parameters": {"unique": 100},
                "seconds_per_update": 0.5,
                "updates": [6, 3],
            }
    return found


@pytest.mark.parametrize("count", [3, 5])
def test_tables_have_the_systems_that_were_evaluated(count):
    systems = list(settings.SYSTEMS)[:count]
    results = results_of(systems, (1, 2))
    table = tables.summary(results)
    assert {tables.ROWS[row][0] for row in table} == set(systems)
    text = tables.markdown(settings.read_settings("imdb"), [1, 2], table, results, {})
    assert ("| dsl + dual inference | 13.00" in text) == (count == 5)
    assert ("dual.dsl 0.5, 0.5." in text) == (count == 5)
    assert text.count("| 6+3, 6+3 |") == count


def test_perplexity_is_over_all_tokens(tmp_path):
    log = tmp_path / "log"
    log.write_text("P-1\t-1.0 -2.0\nP-0\t-3.0 -1.0 -1.0\n", encoding="utf-8")
    scoring.write_likelihoods(tmp_path / "nll", 2, log)
    assert scoring.perplexity(tmp_path / "nll") == pytest.approx(2 ** (8 / 5))


def test_error_rate_and_its_errors(tmp_path):
    for name, lines in (("a", "pos neg pos"), ("b", "pos pos pos"), ("c", "pos")):
        (tmp_path / name).write_text("\n".join(lines.split()) + "\n", encoding="utf-8")
    assert scoring.error_rate(tmp_path / "a", tmp_path / "b") == pytest.approx(100 / 3)
    with pytest.raises(RecipeError, match="a has 3 lines and .*c 1"):
        scoring.error_rate(tmp_path / "a", tmp_path / "c")


def test_a_small_p_is_not_printed_as_zero():
    tests = {("dual", "dsl", 1): (-1.5, 1e-9), ("dsl", "dual", 2): (0.5, 0.00011)}
    text = tables.significance_table(tests)
    assert "| dual - dsl, seed 1 | -1.50 | < 0.0001 |" in text
    assert "| dsl - dual, seed 2 | +0.50 | 0.0001 |" in text


def test_mcnemar_is_the_binomial_test():
    first, second = [True] * 7 + [False] * 4, [False] * 6 + [True] * 2 + [False] * 3
    # six against one of seven
    assert scoring.mcnemar(first, second) == pytest.approx(2 * (1 + 7) / 2**7)
    assert scoring.mcnemar(first, first) == 1
    many = scoring.mcnemar([True] * 3000 + [False] * 2800, [False] * 3000 + [True] * 2800)
    wanted = math.erfc((200 - 1) / math.sqrt(5800) / math.sqrt(2))
    assert many == pytest.approx(wanted, rel=0.02)


def test_benchmark(run, tmp_path):
    words = "--sentences 4 --steps 5 --embed-dim 32 --hidden-size 64 --words 300 --repeats 1"
    script = settings.FOLDER.parents[1] / "benchmarks" / "sentiment.py"
    run("python", script, *words.split(), "--output", tmp_path / "found")
    found = json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))["results"]
    ours = {name: figures["MFLOP/token"] for name, figures in found.items()}
    # three products each: of the output, of the words' inputs, of the states
    lstm, output = 4 * 64 * (32 + 64), 300 * 64
    assert ours["classifier"] == pytest.approx(6 * lstm / 1e6, rel=0.1)
    assert ours["generator"] == pytest.approx(6 * (lstm + output) / 1e6, rel=0.1)
    assert ours["dual"] == pytest.approx(ours["classifier"] + ours["generator"], abs=0.011)
    assert "| dual |" in (tmp_path / "found.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_recipe(run, tmp_path):
    text = (settings.FOLDER / "imdb.cfg").read_text(encoding="utf-8")
    for old, new in SMALL.items():
        assert old in text
        text = text.replace(old, new)
    (tmp_path / "small.cfg").write_text(text, encoding="utf-8")
    raw = write_archive(tmp_path / "a.tar.gz", random_reviews(random.Random(2), 16))

    def step(name, *words):
        words = (*words, "--recipe", tmp_path / "small.cfg")
        return run("python", settings.FOLDER / f"{name}.py", *words, cwd=tmp_path)

    data, runs = tmp_path / "data", tmp_path / "runs"
    assert "24 reviews,        216 words" in step("prepare", raw, data)
    assert "is up to date" in step("prepare", raw, data)
    for system in ("lm.text", *settings.SYSTEMS):
        assert "trained:" in step("train", data, runs, system, 1)
    again = step("train", data, runs, "dual", 1).splitlines()
    assert again == [f"finished: {runs / 'dual.1' / stage}" for stage in ("first", "second")]
    for system, measures in (
        ("generator", {"perplexity"}),
        ("classifier", {"error", "dual_error", "alpha"}),
        *((name, {"error", "dual_error", "alpha", "perplexity"}) for name in BOTH_WAYS),
    ):
        step("evaluate", data, runs, system, 1)
        result = json.loads((runs / f"{system}.1" / "scores.json").read_text(encoding="utf-8"))
        assert set(result["scores"]) == measures and result["updates"] == [6, 3]
    report = step("report", data, runs, 1)
    assert "dual + dual inference - dual, seed 1" in report and "| dsl - classifier, s" in report
