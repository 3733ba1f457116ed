"""examples/duo: corpora, validation set, couples and their table; the whole recipe (slow)."""

import importlib.util
import io
import json
import random
import sys
import tarfile
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
sys.path += [str(EXAMPLES), str(EXAMPLES / "duo")]

from duo_recipe import corpora, forked, results, systems, tables  # noqa: E402
from recipe_tools import RecipeError  # noqa: E402


def script(name):
    """examples/duo/NAME.py as a module."""
    spec = importlib.util.spec_from_file_location(f"duo_{name}", EXAMPLES / "duo" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def write(folder, **files):
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        path = folder / name.replace("_txt", ".txt").replace("_split", ".split")
        path.write_text(text, encoding="latin-1")
    return folder


def test_mr(tmp_path):
    folder = write(tmp_path, mr_txt="Good  film .\nbad\nclichéd\n", mr_split_txt="0\ttrain\t1\n")
    with pytest.raises(RecipeError, match="no test texts in the format of mr"):
        corpora.read("mr", folder)
    write(tmp_path, mr_split_txt="0\ttrain\t1\n2\ttest\t1\n1\ttrain\t0\n")
    found = corpora.read("mr", folder)
    assert found == {
        "train": [("good film .", "pos"), ("bad", "neg")],
        "test": [("clichéd", "pos")],
    }
    write(tmp_path, mr_split_txt="0\ttrain\t1\n3\ttest\t1\n")
    with pytest.raises(RecipeError, match="mr.split.txt, line 2: not NUMBER"):
        corpora.read("mr", folder)


def test_lines_of_label_and_text(tmp_path):
    """The last line may lack its end; a line without a tab is named."""
    write(tmp_path, train_txt="earn\tA b\nacq\tc\nacq\t\n", test_txt="earn\tx")
    found = corpora.read("r8", tmp_path)
    assert found == {"train": [("a b", "earn"), ("c", "acq")], "test": [("x", "earn")]}
    write(tmp_path, test_txt="earn x\n")
    with pytest.raises(RecipeError, match="test.txt, line 1: not LABEL TAB TEXT: 'earn x'"):
        corpora.read("tab", tmp_path)


def test_imdb(tmp_path):
    with tarfile.open(tmp_path / corpora.IMDB, "w:xz") as archive:
        for name in ("train/pos/0_9", "train/neg/3_1", "test/pos/1_10", "train/unsup/2_0"):
            data = f"It's <br />{name.split('/')[1]}!".encode()
            info = tarfile.TarInfo(f"aclImdb/{name}.txt")
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    found = corpora.read("imdb", tmp_path)
    assert found["train"] == [("it's pos !", "pos"), ("it's neg !", "neg")]
    assert found["test"] == [("it's pos !", "pos")]
    with pytest.raises(RecipeError, match="neither a folder aclImdb nor aclImdb_labelled"):
        corpora.read("imdb", tmp_path / "nowhere")


def test_a_tenth_is_for_validation():
    prepare = script("prepare")
    train = [(str(number), "x") for number in range(57)]
    splits = prepare.with_validation({"train": train, "test": [("t", "x")]}, seed=1)
    assert len(splits["valid"]) == 5 and sorted(splits["train"] + splits["valid"]) == sorted(train)
    assert splits != prepare.with_validation({"train": train, "test": [("t", "x")]}, seed=2)


STAMP = {"corpus": "mr", "seed": 1, "vocabulary": "all", "words": 0, "inputs": {"mr.txt": "f"}}


def keep(runs, system, seed, **scores):
    """A finished run."""
    folder = runs / f"{system}.{seed}"
    folder.mkdir(parents=True)
    scores = {"valid_accuracy": scores["accuracy"], "epochs": 9, **scores}
    cost = {"seconds": 60.0, "documents_per_second": 4000}
    result = {"system": system, "seed": seed, "settings": {"data": STAMP}, **scores, **cost}
    (folder / "scores.json").write_text(json.dumps(result))


def test_systems_and_their_commands(tmp_path):
    names = [system.name for system in systems.systems(["a", "b"])]
    assert names == ["single.a", "single.b", "duo.a+b", "average.a+b", "concatenation.a+b"]
    files = {"a": Path("a.txt"), "b": Path("b.txt")}

    def command(number, extra=()):
        system = systems.systems(["a", "b"])[number]
        return systems.train_command(tmp_path, tmp_path, files, system, 3, extra)

    single, both = command(0), command(2, ["--lr", "1"])
    assert "duo_classifier_single" in single and "--embed-path-p" not in single
    assert both[-1] == "1" and both[both.index("--embed-path-p") + 1] == Path("b.txt")
    assert both[both.index("--arch") + 1] == "duo_classifier"
    assert both[both.index("--save-dir") + 1] == tmp_path / "duo.a+b.3"
    for word in ("a=nowhere", "a+b=here", "=here", "here"):
        with pytest.raises(RecipeError, match="must be NAME=FILE"):
            systems.named_files([word])


def test_tables_and_heat_map(tmp_path, monkeypatch):
    runs = tmp_path / "mr"
    for seed, accuracy in ((1, 80.0), (2, 82.0)):
        keep(runs, "single.a", seed, accuracy=accuracy)
    keep(runs, "single.b", 1, accuracy=70.0)
    keep(runs, "duo.a+b", 1, accuracy=90.0)
    found = results.all_results(runs)
    text = tables.section(found, {"accuracy": 75.0})
    assert "| a | 81.00 ± 1.41 | 90.00 |" in text and "| b | - | 70.00 |" in text
    assert "| a + b | 81.00 ± 1.41 | - | - | 90.00 |" in text
    assert "| duo, best couple | 90.00 | a + b | 81.02 |" in text
    assert "| TF-IDF, logistic regression | 75.00 |  | 74.59 |" in text
    assert "4,000 documents/s" in text and "All 4 runs took 4 minutes" in text
    page = tmp_path / "page.md"
    page.write_text("<!-- begin duo classifier -->\nold\n<!-- end duo classifier -->\n")
    words = [str(runs), "--output", str(tmp_path / "out"), "--into", str(page)]
    script("report").main(words)
    assert "90.00" in page.read_text() and "old" not in page.read_text()
    assert (tmp_path / "out.png").stat().st_size > 1000
    script("report").main([*words, "--picture", str(tmp_path / "other.png")])
    assert (tmp_path / "other.png").stat().st_size > 1000
    report, drawn = script("report"), []
    monkeypatch.setattr(report, "save", lambda figure, path: drawn.append(figure))
    report.heat_maps({"mr": found}, None)
    colours = {text.get_text(): text.get_color() for text in drawn[0].axes[0].texts}
    # dark on the bright end of the colours, the other way round on the dark one
    assert colours == {"90.0": "k", "81.0": "w", "70.0": "w", "": "w"}
    with pytest.raises(RecipeError, match="has no scores.json"):
        results.all_results(tmp_path / "nothing")


def test_the_best_couple_is_chosen_on_the_validation_set():
    one, two = (
        {"accuracy": 90.0, "valid_accuracy": 70.0},
        {"accuracy": 60.0, "valid_accuracy": 80.0},
    )
    found = {"duo": {("a", "b"): [one], ("a", "c"): [two]}}
    assert tables.best(found, "duo") == (("a", "c"), [two])


def test_a_run_is_kept_and_belongs_to_one_process(tmp_path):
    keep(tmp_path, "duo.a+b", 1, accuracy=90.0)
    folder = tmp_path / "duo.a+b.1"
    assert results.stored_result(folder, {"data": STAMP})["accuracy"] == 90.0
    assert results.stored_result(tmp_path / "duo.a+b.2") is None
    with pytest.raises(RecipeError, match="was made with other data; name another RUNS"):
        results.stored_result(folder, {"data": {**STAMP, "seed": 2}})
    with results.claimed(folder) as first, results.claimed(folder) as second:
        assert (first, second) == (True, False)
    with results.claimed(folder) as again:
        assert again


def test_facts_come_from_the_log(tmp_path):
    """The best epoch is that of the lowest loss; epochs count whether it improved or not."""
    log = tmp_path / "train.log"
    lines = []
    for loss, accuracy in ((0.9, 60.0), (0.7, 70.0), (0.8, 75.0)):
        lines.append(json.dumps({"train_ups": "2.5", "train_bsz": "20", "train_wall": "6"}))
        lines.append(json.dumps({"valid_loss": str(loss), "valid_accuracy": str(accuracy)}))
    log.write_text("".join(f"2026 | INFO | x | {line}\n" for line in lines))
    facts = results.training_facts(log)
    assert facts["valid_accuracy"] == 70.0 and facts["epochs"] == 3
    assert facts["seconds"] == 6 and facts["documents_per_second"] == 50
    with pytest.raises(RecipeError, match="has no test scores"):
        results.scores_of_test(log)


def test_commands_run_in_processes_of_their_own(tmp_path, capfd):
    def command():
        print("given", *sys.argv[1:])
        assert sys.argv[1] != "wrong", "on purpose"

    before, log = list(sys.argv), tmp_path / "log"
    with capfd.disabled():  # the capture of pytest would be the one that the process prints to
        forked.execute({"fairseq-train": command}, ["fairseq-train", 1, "b"], log)
        assert log.read_text() == "given 1 b\n" and sys.argv == before
        with pytest.raises(
            RecipeError, match="(?s)status 1 of the command fairseq-train wrong.*on purpose"
        ):
            forked.execute({"fairseq-train": command}, ["fairseq-train", "wrong"], log)


def test_words_of_the_dictionary(tmp_path):
    splits = {"train": [("b a b", "x")], "test": [("c c c", "x")]}
    script("prepare").write_dictionary(splits, tmp_path / "dict.txt", 2)
    assert (tmp_path / "dict.txt").read_text() == "c 3\nb 2\n"


def test_own_vectors(tmp_path):
    pytest.importorskip("gensim", reason="own_vectors.py needs gensim: pip install .[recipes]")
    (tmp_path / "text").write_text("good film\nbad film\n" * 5)
    script("own_vectors").main([str(tmp_path / "v.vec"), str(tmp_path / "text"), "--width", "3"])
    first, *lines = (tmp_path / "v.vec").read_text().splitlines()
    assert first == "3 3" and {line.split()[0] for line in lines} == {"good", "bad", "film"}
    assert all(len(line.split()) == 4 for line in lines)


def test_tfidf(tmp_path, capsys):
    pytest.importorskip("sklearn", reason="tfidf.py needs scikit-learn: pip install .[recipes]")
    texts = tmp_path / "text"
    texts.mkdir()
    for split in ("train", "test"):
        (texts / f"{split}.text").write_text("good film\nbad film\n" * 5)
        (texts / f"{split}.label").write_text("pos\nneg\n" * 5)
    script("tfidf").main([str(tmp_path), str(tmp_path / "runs")])
    assert json.loads((tmp_path / "runs" / "tfidf.json").read_text())["accuracy"] == 100
    assert "accuracy 100.00  macro_f1 100.00" in capsys.readouterr().out


@pytest.mark.slow
def test_whole_recipe(tmp_path, run):
    """A word decides, and one of the two sets of vectors knows it."""
    rng, lines = random.Random(1), {"train": 300, "test": 40}
    for split, size in lines.items():
        rows = []
        for number in range(size):
            label = ("bad", "good")[number % 2]
            noise = [f"w{rng.randrange(20)}" for _ in range(5)]
            rows.append(f"{label}\t{' '.join(noise)} is{label}\n")
        (tmp_path / f"{split}.txt").write_text("".join(rows))
    vectors = {"knows": ["isgood 1 0", "isbad 0 1"], "not": ["w1 1 0", "w2 0 1"]}
    words = []
    for name, rows in vectors.items():
        (tmp_path / f"{name}.vec").write_text("".join(row + "\n" for row in rows))
        words += ["--set", f"{name}={tmp_path / name}.vec"]
    recipe, data, runs = EXAMPLES / "duo", tmp_path / "data", tmp_path / "runs"
    made = ("tab", tmp_path, data, "--vocabulary", "all")
    assert "270 train, 30 valid, 40 test" in run("python", recipe / "prepare.py", *made)
    extra = ("--seeds", 1, "--", "--max-epoch", 20, "--lr", 0.02)
    out = run("python", recipe / "couples.py", data, runs, *words, *extra)
    assert out.count("accuracy") == 5 and not list(runs.glob("*/*.pt"))
    again = run("python", recipe / "couples.py", data, runs, *words, *extra)
    assert "accuracy" not in again
    found = results.all_results(runs)
    assert found["single"]["knows",][0]["accuracy"] > found["single"]["not",][0]["accuracy"]
    failed = (*words, "--seeds", 2, "--", "--max-epoch", "x")
    assert "fairseq-train" in run("python", recipe / "couples.py", data, runs, *failed, fails=True)
