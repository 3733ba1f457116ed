"""examples/duo: corpora, validation set, couples and their table; the whole recipe (slow)."""

import importlib.util
import io
import random
import sys
import tarfile
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
sys.path += [str(EXAMPLES), str(EXAMPLES / "duo")]

from duo_recipe import corpora  # noqa: E402
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
    with pytest.raises(RecipeError, match="no test texts in the form of mr"):
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


def test_couples_and_their_table(tmp_path):
    couples = script("couples")
    names = ["a", "b"]
    assert couples.couples(names) == [("a", "a"), ("a", "b"), ("b", "b")]
    found = {("a", "a"): [80.0, 82.0], ("a", "b"): [90.0], ("b", "b"): [70.0, 70.0]}
    assert couples.table(names, found) == (
        "| | a | b |\n|---|---|---|\n| a | 81.00 ± 1.41 | 90.00 |\n| b | - | 70.00 ± 0.00 |\n"
    )
    couples.heat_map(names, found, tmp_path / "map.png")
    assert (tmp_path / "map.png").stat().st_size > 1000
    files = {"a": "a.txt", "b": "b.txt"}
    single = couples.training_command(tmp_path, tmp_path, files, ("a", "a"), 1, [])
    assert "duo_classifier_single" in single and "--embed-path-p" not in single
    both = couples.training_command(tmp_path, tmp_path, files, ("a", "b"), 1, ["--lr", "1"])
    assert both[-1] == "1" and both[both.index("--embed-path-p") + 1] == "b.txt"
    with pytest.raises(RecipeError, match="--set a=nowhere: must be NAME=FILE"):
        couples.named_files(["a=nowhere"])


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
    assert "| knows | " in out and (runs / "couples.png").is_file()
    again = run("python", recipe / "couples.py", data, runs, *words, *extra)
    assert "accuracy" not in again and again == (runs / "couples.md").read_text() + "\n"
