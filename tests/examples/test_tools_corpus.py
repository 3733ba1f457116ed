"""Reading aligned text in any number of languages."""

import pytest
from recipe_tools import RecipeError
from recipe_tools.corpus import copy_plain, inputs_of
from recipe_tools.files import aligned

FILES = {"train": "train", "valid": "val", "test": "test_a"}


def test_empty_training_lines_are_dropped_in_all_languages_and_counted(raw, tmp_path):
    with open(raw / "train.de", "a", encoding="utf-8") as stream:
        stream.write("\n  allein \nzwei\n")
    with open(raw / "train.en", "a", encoding="utf-8") as stream:
        stream.write("alone\nalone\ntwo\n")
    for stem in FILES.values():
        lines = (raw / f"{stem}.de").read_text(encoding="utf-8").splitlines()
        text = "".join(f"{number}\n" for number, _ in enumerate(lines))
        (raw / f"{stem}.fr").write_text(text.replace("122\n", "\n"), encoding="utf-8")
    (tmp_path / "plain").mkdir()
    languages = ("de", "en", "fr")
    counts = copy_plain(inputs_of(FILES, languages, raw), tmp_path / "plain")
    assert counts == {"dropped": 2, "train": 121, "valid": 12, "test": 12}
    last = [
        (tmp_path / "plain" / f"train.{language}").read_text(encoding="utf-8").splitlines()[-1]
        for language in languages
    ]
    assert last == ["allein", "alone", "121"]


def test_only_the_first_training_lines_are_read_if_asked(raw, tmp_path):
    (tmp_path / "plain").mkdir()
    counts = copy_plain(inputs_of(FILES, ("de", "en"), raw), tmp_path / "plain", train_lines=7)
    assert counts == {"dropped": 0, "train": 7, "valid": 12, "test": 12}
    whole = (raw / "train.de").read_text(encoding="utf-8").splitlines()
    kept = (tmp_path / "plain" / "train.de").read_text(encoding="utf-8").splitlines()
    assert kept == whole[:7]


def test_the_file_of_another_length_is_named(write, tmp_path):
    a, b, c = (
        write(tmp_path / name, ["x"] * size) for name, size in (("a", 3), ("b", 3), ("c", 2))
    )
    assert list(aligned(a, b)) == [("x", "x")] * 3
    with pytest.raises(RecipeError, match=r"a has 3 lines and \S*c 2: line N of one must be"):
        list(aligned(a, b, c))
    with pytest.raises(RecipeError, match=r"a has 3 lines and \S*c 2: "):
        list(aligned(c, a, b))
