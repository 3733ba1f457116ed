"""What the tests of the recipes share: their modules and scripts, raw text, small settings."""

import gzip
import importlib.util
import random
import sys
import zipfile
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parent.parent.parent / "examples"
RECIPES = ("routed", "sentiment", "twin")
sys.path += [str(EXAMPLES), *(str(EXAMPLES / name) for name in RECIPES)]

SENTENCES = [
    "A man in an orange hat looks at something .",
    "Two dogs run through the tall grass .",
    "A girl in a karate uniform breaks a stick with a kick .",
    "People are fixing the roof of a house .",
    "A group of people stands in front of an igloo .",
] * 8


@pytest.fixture(scope="session")
def examples_folder():
    return EXAMPLES


@pytest.fixture
def script():
    """Function (name, system) -> the script examples/SYSTEM/NAME.py as a module."""

    def load(name, system):
        path = EXAMPLES / system / f"{name}.py"
        spec = importlib.util.spec_from_file_location(f"{system}_{name}", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load


@pytest.fixture
def sentences():
    """Forty lines of English."""
    return list(SENTENCES)


@pytest.fixture
def write():
    """Function (path, lines) -> path, a text file with its folder."""

    def write_lines(path, lines):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
        return path

    return write_lines


SIZES = (("train", 120), ("val", 12), ("test_a", 12))


def write_raw(folder, sizes=SIZES, languages=("de", "en")):
    """Raw text in invented languages that say the same in another order."""
    rng = random.Random(3)
    folder.mkdir(parents=True, exist_ok=True)
    for stem, size in sizes:
        sides = {"de": [], "en": [], "fr": []}
        for _ in range(size):
            one, two, deed = rng.randrange(6), rng.randrange(6), rng.randrange(5)
            sides["de"].append(f"Der Mann{one}, den Frau{two} sieht{deed}.")
            sides["en"].append(f"man{one} is seen{deed} by woman{two}!")
            sides["fr"].append(f"La femme{two} est vue{deed} par homme{one}.")
        for language in languages:
            lines = sides[language]
            text = "".join(line + "\n" for line in lines)
            (folder / f"{stem}.{language}").write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def raw_text():
    """`write_raw`."""
    return write_raw


@pytest.fixture
def raw(tmp_path):
    """A fresh folder of raw text; tests may damage it."""
    return write_raw(tmp_path / "raw")


@pytest.fixture
def raw3(tmp_path):
    """A fresh folder of raw text in three languages; tests may damage it."""
    return write_raw(tmp_path / "raw3", languages=("de", "en", "fr"))


def graphs(numbers):
    """A graph for each number, in a file of an AMR bank."""
    return "".join(f"# ::id a.{n}\n# ::snt It is {n} .\n(i / it :quant {n})\n\n" for n in numbers)


@pytest.fixture
def routed_raw(tmp_path):
    """A fresh folder of annotated corpora under the names that examples/routed knows them by."""
    from routed_recipe.settings import read_settings

    settings, folder = read_settings("multi30k"), tmp_path / "raw"
    ner, tree, amr = (settings.text[task] for task in ("ner", "tree", "amr"))
    for name in (*ner.values(), *tree.values(), *amr.values()):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
    for name in ner.values():
        rows = "EU NNP I-NP I-ORG\nsays VBZ I-VP O\n\n" * 30
        (folder / name).write_bytes(gzip.compress(rows.encode()))
    for key, numbers in (("whole", range(20)), ("train", range(14)), ("test", range(17, 20))):
        (folder / amr[key]).write_text(graphs(numbers), encoding="utf-8")
    with zipfile.ZipFile(folder / tree["file"], "w") as archive:
        for name, numbers in zip("abcd", (range(7), range(7, 17), range(17, 19), range(19, 20))):
            trees = "".join(f"( (S (NP (NN w{n}))) )\n" for n in numbers)
            archive.writestr(f"{name}.mrg", trees)
    return folder
