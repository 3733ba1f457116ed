"""No command writes over a file that it reads."""

import pytest
from experiments.definition import FOLDER
from script_modules import load_script

# of each command: a file that it would write, and words that make it read that file, or READ
CASES = [
    ("annotated", "out/train.ner", "ner --train READ --valid a --test a --source en --output out"),
    ("captions", "out/bin/train.features", "--train READ a --test a a --strips 1 1 1 "
     "--features grid --output out"),
    ("spoken-digits", "out/raw/test.ref", "READ --test 0-0 --valid 1-1 --digits 1 1 "
     "--strings 1 1 1 --output out"),
    ("monolingual", "out/text", "--text a --without READ --output out/text"),
    ("draw", "out/a", "READ --lines 1 --output out"),
    ("reviews", "out/valid.label", "READ --valid 1 --output out"),
    # the training text is written before the other one is read
    ("parallel", "out/train.de", "--languages de --train a --valid out/train --test a "
     "--output out"),
    ("tab-separated", "out/train.de", "--file READ --languages de en --output out"),
    ("divide", "out/de-en.de", "--languages de en --train out/de-en --output out"),
    ("recipe", "out/test.toml", "out --languages en toml --output out/test.toml --force"),
    ("labelled", "out/valid.label", ". --form tab --output out"),  # test.txt is a link to it
    ("word-vectors", "out/text", "a READ --output out/text"),
    ("tfidf", "out/test.text", "out --output out/test.text"),
    ("learn-subwords", "out/model", "a READ --vocabulary 60 --model out/model"),
    ("apply-subwords", "out/a", "a --model READ --output out"),
]  # fmt: skip
TEXT = "a\tb\n" * 9


@pytest.fixture(scope="module")
def script():
    """examples/prepare.py as a module."""
    return load_script(FOLDER / "prepare.py")


def test_every_command_is_tried(script):
    assert {name for name, *_ in CASES} == script.COMMANDS.keys()


@pytest.mark.parametrize("name, place, words", CASES, ids=[name for name, *_ in CASES])
def test_a_file_that_is_read_is_not_replaced(name, place, words, script, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for path in ("a", "a.de", "train.txt", place, "out/de-en.en"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(TEXT, encoding="utf-8")
    (tmp_path / "test.txt").symlink_to(place)
    option = "--model" if name == "learn-subwords" else "--output"
    with pytest.raises(SystemExit, match=rf"{place} would be replaced .*allowed: another {option}"):
        script.main([name, *words.replace("READ", place).split()])
    assert (tmp_path / place).read_text(encoding="utf-8") == TEXT


@pytest.mark.parametrize(
    "words", ["draw a --lines 1 --output a", "learn-subwords a --vocabulary 8 --model a/model"]
)
def test_a_file_in_the_place_of_a_folder_is_named(words, script, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a").write_text("b c\n", encoding="utf-8")
    with pytest.raises(SystemExit, match="cannot write to a: a: File exists"):
        script.main(words.split())
