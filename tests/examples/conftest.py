"""What the tests of the experiments share: their modules and raw text."""

import random
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parent.parent.parent / "examples"
sys.path.append(str(EXAMPLES))


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
            man, woman, deed = rng.randrange(6), rng.randrange(6), rng.randrange(5)
            sides["de"].append(f"Der Mann{man}, den Frau{woman} sieht{deed}.")
            sides["en"].append(f"man{man} is seen{deed} by woman{woman}!")
            sides["fr"].append(f"La femme{woman} est vue{deed} par homme{man}.")
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
